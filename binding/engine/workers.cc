#include "engine/workers.h"

#include <utility>

namespace tokenloop {

Workers::Workers(uint32_t helpers) {
  for (uint32_t i = 0; i < helpers; ++i) {
    auto thread = std::make_unique<Thread>();
    if (!thread->Start([this, i] { Serve(i + 1); })) break;
    threads_.push_back(std::move(thread));
  }
}

Workers::~Workers() {
  stopping_ = true;
  round_ += 2;
  round_.notify_all();
  threads_.clear();  // joins them while there is still something to look at
}

void Workers::Start(size_t count, Body body) {
  body_ = std::move(body);
  count_ = count;
  next_ = 0;
  ++round_;  // odd: open
  if (count > 0) round_.notify_all();
}

void Workers::Finish() {
  Work(0);
  ++round_;  // even: closed to those who come late
  // Whoever is inside finishes its last piece of work.
  for (uint32_t inside = inside_; inside != 0; inside = inside_) inside_.wait(inside);
}

void Workers::Run(size_t count, const Body& body) {
  if (count <= 1 || threads_.empty()) {
    for (size_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  Start(count, body);
  Finish();
}

void Workers::Work(size_t worker) {
  for (size_t index = next_++; index < count_; index = next_++) body_(index, worker);
}

void Workers::Serve(size_t worker) {
  uint32_t seen = 0;
  while (true) {
    round_.wait(seen);
    seen = round_;
    if (stopping_) return;
    if (seen % 2 == 0) continue;
    // Entering first and looking again makes sure that Finish either waits for this thread or has shut it out.
    ++inside_;
    if (round_ == seen) Work(worker);
    if (--inside_ == 0) inside_.notify_one();
  }
}

}  // namespace tokenloop
