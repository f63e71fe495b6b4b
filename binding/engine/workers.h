// A few threads that take part in loops of independent work. Owned by the loop thread, which is the only one to call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/thread.h"

namespace tokenloop {

class Workers {
 public:
  // body(index, worker): `worker` is 0 for the calling thread and 1..helpers() for the others, for working memory of
  // its own. It must not throw.
  using Body = std::function<void(size_t index, size_t worker)>;

  // Starts up to `helpers` threads; fewer where the system has none to give.
  explicit Workers(uint32_t helpers);
  // Joins them.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  size_t helpers() const { return threads_.size(); }

  // Hands out 0..count-1 to the helpers and returns at once. Finish() must follow before the next Start.
  void Start(size_t count, Body body);
  // Takes part in what is left, and waits for what runs.
  void Finish();
  // Start and Finish, or all of it here where `count` is 1.
  void Run(size_t count, const Body& body);

 private:
  void Serve(size_t worker);
  void Work(size_t worker);

  std::vector<std::unique_ptr<Thread>> threads_;
  Body body_;
  // One round after the other: a helper that wakes up late finds the next index beyond the count, or joins the next
  // round. `round_` is odd while a round may be joined; `inside_` counts the helpers that look at body_ and count_.
  size_t count_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<uint32_t> round_{0};
  std::atomic<uint32_t> inside_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace tokenloop
