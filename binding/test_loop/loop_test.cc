// tokenloop_loop_test FIRST_SEED SEEDS: the token loop on a scripted model, from several threads at once. Random mixes
// of requests (common beginnings, n, stop strings, grammars, logprobs, tenants, priorities, deadlines, cancels, readers
// that fall behind, caches that are far too small, guesses, faults) must give each request the text that it gets alone,
// leave no cell behind, and never ask of the model what it cannot do. Prints one line of JSON; exit code 1 and the
// seeds where something was wrong.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "engine/draft_source.h"
#include "engine/event_queue.h"
#include "engine/loop.h"
#include "nlohmann/json.hpp"
#include "test_loop/scripted_decoder.h"
#include "text/utf8.h"

namespace tokenloop {
namespace {

using Random = std::minstd_rand;

uint32_t UpTo(Random& random, uint32_t count) { return random() % count; }
bool Chance(Random& random, double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random) < probability;
}

enum class Reader { kKeen, kSlow, kLate };

struct Planned {
  std::vector<llama_token> prompt;
  RequestSpec spec;
  std::shared_ptr<const CompiledGrammar> grammar;
  Reader reader = Reader::kKeen;
  std::optional<uint32_t> cancel_after_us;
  uint32_t delay_us = 0;
};

// What came of one answer.
struct Outcome {
  std::string text;
  std::string tokens;  // of its logprobs
  uint32_t deltas = 0;
  int32_t prompt_tokens = -1;
  bool ended = false;
  std::optional<FinishReason> reason;
  std::string failure;
};

// Takes events as the JavaScript side does: packed, through the queue, on another thread. Counts what each request's
// reader has not taken.
class Collector : public EventSink {
 public:
  explicit Collector(Violations& violations) : violations_(violations) {}

  // Loop thread.
  void Publish(std::span<const Event> events) override {
    queue_.Push(events);
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }

  // The reader's thread, until Stop.
  void Run() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return rung_ || stopped_; });
        if (!rung_) return;
        rung_ = false;
      }
      const EventQueue::Batch batch = queue_.Take();
      const std::lock_guard lock(mutex_);
      for (const Event& event : Unpack(batch)) Take(event);
      changed_.notify_all();
    }
  }
  void Stop() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    stopped_ = true;
    changed_.notify_all();
  }

  uint64_t TakeUnread(uint32_t request, uint64_t most) {
    const std::lock_guard lock(mutex_);
    uint64_t& unread = unread_[request];
    const uint64_t taken = std::min(unread, most);
    unread -= taken;
    return taken;
  }

  // False when that takes too long.
  bool WaitForEnd(size_t answers) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      size_t ended = 0;
      for (const auto& [id, outcome] : outcomes_) ended += outcome.ended ? 1 : 0;
      return ended == answers;
    });
  }
  std::map<std::pair<uint32_t, uint32_t>, Outcome> Outcomes() {
    const std::lock_guard lock(mutex_);
    return outcomes_;
  }

 private:
  std::vector<Event> Unpack(const EventQueue::Batch& batch) {
    // Where each UTF-16 unit begins.
    std::vector<size_t> bytes;
    for (size_t i = 0; i < batch.text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(batch.text[i]);
      if ((byte & 0xC0) == 0x80) continue;
      bytes.push_back(i);
      if (byte >= 0xF0) bytes.push_back(i);
      if (byte >= 0x80 && batch.ascii) violations_.Add("a batch that is not ASCII says it is");
    }
    bytes.push_back(batch.text.size());
    std::vector<Event> events;
    for (size_t at = 0; at + EventQueue::kRecordSize <= batch.records.size(); at += EventQueue::kRecordSize) {
      const int32_t* record = &batch.records[at];
      const size_t begin = bytes.at(static_cast<size_t>(record[4]));
      const size_t end = bytes.at(static_cast<size_t>(record[5]));
      events.push_back({static_cast<uint32_t>(record[0]), static_cast<uint32_t>(record[1]),
                        static_cast<EventKind>(record[2]), record[3], batch.text.substr(begin, end - begin)});
    }
    return events;
  }

  void Take(const Event& event) {
    Outcome& outcome = outcomes_[{event.request, event.choice}];
    if (outcome.ended) violations_.Add("an event after the last one");
    switch (event.kind) {
      case EventKind::kPrompt:
        if (outcome.prompt_tokens >= 0 || outcome.deltas > 0) violations_.Add("a late prompt event");
        outcome.prompt_tokens = event.value;
        break;
      case EventKind::kDelta:
        outcome.text += event.text;
        ++outcome.deltas;
        unread_[event.request] += kRecordOverhead + Utf16Length(event.text);
        break;
      case EventKind::kLogprobs:
        outcome.tokens += nlohmann::json::parse(event.text)["token"].get<std::string>();
        unread_[event.request] += kRecordOverhead + Utf16Length(event.text);
        break;
      case EventKind::kFinished:
        outcome.reason = static_cast<FinishReason>(event.value);
        outcome.ended = true;
        break;
      case EventKind::kFailed:
        outcome.failure = nlohmann::json::parse(event.text)["code"].get<std::string>();
        outcome.ended = true;
        break;
    }
  }

  Violations& violations_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
  bool stopped_ = false;
  EventQueue queue_;
  std::map<std::pair<uint32_t, uint32_t>, Outcome> outcomes_;
  std::map<uint32_t, uint64_t> unread_;
};

std::shared_ptr<const ConstraintVocabulary> MakeVocabulary() {
  auto vocabulary = std::make_shared<ConstraintVocabulary>();
  std::vector<std::string> pieces(ScriptedDecoder::kVocabulary);
  for (llama_token token = 1; token < static_cast<llama_token>(pieces.size()); ++token) {
    pieces[static_cast<size_t>(token)] = ScriptedDecoder::Piece(token);
  }
  vocabulary->end_tokens.push_back(ScriptedDecoder::kEnd);
  vocabulary->trie = std::make_shared<const grammar::Vocabulary>(pieces);
  return vocabulary;
}

std::shared_ptr<const CompiledGrammar> MakeGrammar(const std::string& text,
                                                   const std::shared_ptr<const ConstraintVocabulary>& vocabulary) {
  grammar::GbnfError error;
  auto compiled = std::make_shared<CompiledGrammar>();
  compiled->grammar = grammar::Grammar::Parse(text, error);
  if (!compiled->grammar) std::abort();
  compiled->masker = std::make_shared<grammar::Masker>(compiled->grammar, vocabulary->trie);
  compiled->vocabulary = vocabulary;
  return compiled;
}

PreparedPrompt Prepared(const Planned& planned) {
  PreparedPrompt prompt;
  prompt.tokens = planned.prompt;
  prompt.stops = planned.spec.stop;
  prompt.sampler = Sampler::Greedy(ScriptedDecoder::kVocabulary);
  prompt.grammar = planned.grammar;
  return prompt;
}

// A loop with its thread, and who waits for what.
class Harness {
 public:
  Harness(const ScriptedOptions& options, const EngineConfig& config, Violations& violations)
      : decoder_(options, violations),
        collector_(violations),
        drafts_(config.draft_tokens > 0 ? std::make_unique<NgramDrafts>(config.draft_tokens) : nullptr),
        loop_(decoder_, drafts_.get(), config, collector_, [](uint32_t) {}),
        thread_([this] { loop_.Run(); }),
        reader_([this] { collector_.Run(); }) {}
  ~Harness() { Stop(); }

  void Stop() {
    loop_.Stop();
    if (thread_.joinable()) thread_.join();
    collector_.Stop();
    if (reader_.joinable()) reader_.join();
  }

  std::shared_ptr<RequestControl> Submit(uint32_t id, const Planned& planned, Random* random) {
    const auto control = std::make_shared<RequestControl>();
    const auto spec = std::make_shared<const RequestSpec>(planned.spec);
    for (uint32_t choice = 0; choice < spec->n; ++choice) {
      auto request = std::make_shared<Request>(id, choice, spec, control);
      loop_.Submit(request);
      if (random != nullptr && Chance(*random, 0.3)) std::this_thread::yield();
      loop_.Ready(std::move(request), Prepared(planned));
    }
    return control;
  }

  TokenLoop& loop() { return loop_; }
  Collector& collector() { return collector_; }
  ScriptedDecoder& decoder() { return decoder_; }

 private:
  ScriptedDecoder decoder_;
  Collector collector_;
  const std::unique_ptr<DraftSource> drafts_;
  TokenLoop loop_;
  std::thread thread_;
  std::thread reader_;
};

std::vector<llama_token> RandomTokens(Random& random, uint32_t count) {
  std::vector<llama_token> tokens(count);
  for (llama_token& token : tokens) {
    token = static_cast<llama_token>(1 + UpTo(random, ScriptedDecoder::kVocabulary - 1));
  }
  return tokens;
}

std::vector<Planned> PlanRequests(Random& random, uint32_t cells,
                                  const std::vector<std::shared_ptr<const CompiledGrammar>>& grammars) {
  std::vector<std::vector<llama_token>> beginnings;
  for (uint32_t i = 0; i < 3; ++i) beginnings.push_back(RandomTokens(random, 1 + UpTo(random, cells / 2)));
  std::vector<Planned> requests(2 + UpTo(random, 11));
  for (Planned& planned : requests) {
    const auto& beginning = beginnings[UpTo(random, 3)];
    const uint32_t shared = Chance(random, 0.7) ? static_cast<uint32_t>(beginning.size())
                                                : UpTo(random, static_cast<uint32_t>(beginning.size()));
    planned.prompt.assign(beginning.begin(), beginning.begin() + shared);
    for (const llama_token token : RandomTokens(random, 1 + UpTo(random, 20))) planned.prompt.push_back(token);
    RequestSpec& spec = planned.spec;
    spec.max_tokens = Chance(random, 0.1) ? -1 : static_cast<int32_t>(UpTo(random, 80));
    spec.n = Chance(random, 0.2) ? 2 + UpTo(random, 3) : 1;
    if (Chance(random, 0.3)) spec.stop = {"aba", "bb"};
    if (Chance(random, 0.3)) spec.logprobs = static_cast<int32_t>(UpTo(random, 4));
    spec.cache_prompt = !Chance(random, 0.15);
    spec.cache_key = Chance(random, 0.3) ? "other" : "";
    spec.priority = Chance(random, 0.3) ? static_cast<int32_t>(UpTo(random, 3)) - 1 : 0;
    if (Chance(random, 0.05)) spec.timeout_ms = 1 + UpTo(random, 4);
    if (Chance(random, 0.2)) planned.grammar = grammars[UpTo(random, static_cast<uint32_t>(grammars.size()))];
    planned.reader = Chance(random, 0.6) ? Reader::kKeen : Chance(random, 0.5) ? Reader::kSlow : Reader::kLate;
    if (Chance(random, 0.15)) planned.cancel_after_us = UpTo(random, 3000);
    planned.delay_us = Chance(random, 0.5) ? 0 : UpTo(random, 800);
  }
  return requests;
}

bool StartsWith(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

std::string Compare(const Planned& planned, const Outcome& alone, const Outcome& mixed) {
  if (!mixed.ended) return "no last event";
  if (!mixed.failure.empty()) {
    if (mixed.failure == "request_timeout" && planned.spec.timeout_ms > 0) {
      return StartsWith(alone.text, mixed.text) ? "" : "another text before its time was up";
    }
    return mixed.failure == alone.failure ? "" : "failed: " + mixed.failure;
  }
  if (mixed.reason == FinishReason::kCancelled) {
    if (!planned.cancel_after_us) return "cancelled by nobody";
    // What was held back for a stop string or a character comes out at the end.
    const size_t sure = mixed.text.size() < 8 ? 0 : mixed.text.size() - 8;
    return StartsWith(alone.text, mixed.text.substr(0, sure)) ? "" : "another text before the cancel";
  }
  if (mixed.reason != alone.reason) return "another finish reason";
  if (mixed.text != alone.text) return "another text: " + mixed.text + " | " + alone.text;
  if (mixed.tokens != alone.tokens) return "other logprobs: " + mixed.tokens + " | " + alone.tokens;
  return "";
}

struct Totals {
  uint64_t answers = 0;
  uint64_t cancelled = 0;
  uint64_t timed_out = 0;
  uint64_t steps = 0;
  uint64_t cached_tokens = 0;
  uint64_t preemptions = 0;
  uint64_t parkings = 0;
  uint64_t pauses = 0;
  uint64_t evictions = 0;
  uint64_t drafted = 0;
  uint64_t accepted = 0;
};

std::vector<std::string> RunMix(uint32_t seed, const std::vector<std::shared_ptr<const CompiledGrammar>>& grammars,
                                Totals& totals) {
  Random random(seed * 7919 + 1);
  random.discard(16);
  Violations violations;
  std::vector<std::string> wrong;
  const auto keep = [&](const std::string& what) {
    if (!what.empty()) wrong.push_back("seed " + std::to_string(seed) + ": " + what);
  };

  ScriptedOptions options;
  options.cells = 60 + UpTo(random, 400);
  options.parallel = 1 + UpTo(random, 6);
  options.sequences = options.parallel + (Chance(random, 0.8) ? UpTo(random, 10) : 0);
  options.batch_size = std::max(options.parallel, 8 + UpTo(random, 56));
  options.micro_batch_size = std::max(4u, options.batch_size / 2);
  options.window = Chance(random, 0.3) ? 2 + UpTo(random, 40) : 0;
  options.gives_away = 0.3;
  options.seed = seed + 1;
  options.no_room = Chance(random, 0.2) ? 0.02 : 0;
  options.hesitates = Chance(random, 0.7) ? 0.01 : 0;
  EngineConfig config;
  config.step_target_ms = 0.05 + UpTo(random, 20) * 0.1;
  config.stream_buffer = 600 + UpTo(random, 8000);
  config.stall_timeout_ms = 0;
  config.sampling_threads = UpTo(random, 3);
  config.draft_tokens = Chance(random, 0.5) ? 1 + UpTo(random, 8) : 0;

  const std::vector<Planned> requests = PlanRequests(random, options.cells, grammars);
  std::map<uint32_t, Outcome> alone;
  {
    ScriptedOptions single = options;
    single.parallel = 1;
    single.sequences = 1;
    single.no_room = 0;
    single.hesitates = 0;
    EngineConfig plain = config;
    plain.stream_buffer = 1u << 30;
    plain.sampling_threads = 0;
    plain.draft_tokens = 0;
    Harness harness(single, plain, violations);
    for (uint32_t i = 0; i < requests.size(); ++i) {
      Planned planned = requests[i];
      planned.spec.n = 1;
      planned.spec.timeout_ms = 0;
      harness.Submit(i + 1, planned, nullptr);
      if (!harness.collector().WaitForEnd(i + 1)) keep("alone, request " + std::to_string(i) + " does not end");
    }
    for (const auto& [id, outcome] : harness.collector().Outcomes()) alone[id.first] = outcome;
  }

  Harness harness(options, config, violations);
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<RequestControl>> controls;
  std::atomic<bool> all_submitted{false};
  std::atomic<bool> over{false};
  size_t answers = 0;
  for (const Planned& planned : requests) answers += planned.spec.n;
  // Two threads submit, one reads and cancels.
  const auto submit = [&](uint32_t first) {
    Random own(seed + first + 100);
    for (uint32_t i = first; i < requests.size(); i += 2) {
      std::this_thread::sleep_for(std::chrono::microseconds(requests[i].delay_us));
      auto control = harness.Submit(i + 1, requests[i], &own);
      const std::lock_guard lock(mutex);
      controls[i + 1] = std::move(control);
    }
  };
  std::thread reader([&] {
    Random own(seed + 200);
    const auto started = Clock::now();
    uint32_t turns = 0;
    while (!over) {
      const auto us = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started).count();
      {
        const std::lock_guard lock(mutex);
        for (auto& [id, control] : controls) {
          const Planned& planned = requests[id - 1];
          // Late readers begin when there is nothing else to wait for.
          if (planned.reader == Reader::kLate && turns < 20) continue;
          const uint64_t most = planned.reader == Reader::kSlow ? 300 + UpTo(own, 2000) : ~uint64_t{0};
          const uint64_t taken = harness.collector().TakeUnread(id, most);
          if (taken > 0) {
            control->taken += taken;
            if (control->awaited) harness.loop().Wake();
          }
          if (planned.cancel_after_us && us >= *planned.cancel_after_us && !control->cancelled) {
            control->cancelled = true;
            harness.loop().Wake();
          }
        }
      }
      ++turns;
      std::this_thread::sleep_for(std::chrono::microseconds(50 + UpTo(own, 100)));
    }
  });
  std::thread first([&] { submit(0); });
  std::thread second([&] { submit(1); });
  first.join();
  second.join();
  all_submitted = true;
  if (!harness.collector().WaitForEnd(answers)) {
    const Stats stats = harness.loop().Snapshot();
    std::ostringstream what;
    what << "not all end: queued " << stats.queued << ", prefilling " << stats.prefilling << ", decoding "
         << stats.decoding << ", paused " << stats.paused << ", cells " << stats.cells_used << " + "
         << stats.cells_cached << " of " << stats.cells;
    keep(what.str());
  }
  over = true;
  reader.join();
  harness.Stop();

  for (const auto& [id, outcome] : harness.collector().Outcomes()) {
    const std::string difference = Compare(requests[id.first - 1], alone[id.first], outcome);
    if (!difference.empty()) {
      keep("request " + std::to_string(id.first) + "/" + std::to_string(id.second) + ": " + difference);
    }
    ++totals.answers;
    totals.cancelled += outcome.reason == FinishReason::kCancelled ? 1 : 0;
    totals.timed_out += outcome.failure == "request_timeout" ? 1 : 0;
  }
  const Stats stats = harness.loop().Snapshot();
  if (stats.queued + stats.prefilling + stats.decoding + stats.sequences + stats.cells_used != 0)
    keep("it is not idle");
  if (stats.cells_cached != harness.decoder().live()) {
    keep(std::to_string(stats.cells_cached) + " cells cached, but there are " +
         std::to_string(harness.decoder().live()));
  }
  if (stats.finished + stats.failed + stats.cancelled_queued + stats.cancelled_prefilling + stats.cancelled_decoding !=
      answers) {
    keep("answers are lost or counted twice");
  }
  for (const std::string& what : violations.Take()) keep(what);
  totals.steps += stats.steps;
  totals.cached_tokens += stats.cached_tokens;
  totals.preemptions += stats.preemptions;
  totals.parkings += stats.parkings;
  totals.pauses += stats.pauses;
  totals.evictions += stats.evictions;
  totals.drafted += stats.drafted_tokens;
  totals.accepted += stats.accepted_tokens;
  return wrong;
}

int Main(uint32_t first, uint32_t seeds) {
  const auto vocabulary = MakeVocabulary();
  const std::vector<std::shared_ptr<const CompiledGrammar>> grammars = {
      MakeGrammar("root ::= [c-j ]{3,40}", vocabulary),
      MakeGrammar("root ::= (\"a\" | \"b\" | \"ab\")+ \"\\n\"", vocabulary),
      MakeGrammar("root ::= \"(\"? item (\" \" item)*\nitem ::= [c-z]+", vocabulary),
  };
  Totals totals;
  std::vector<std::string> wrong;
  for (uint32_t seed = first; seed < first + seeds && wrong.size() < 20; ++seed) {
    for (std::string& what : RunMix(seed, grammars, totals)) wrong.push_back(std::move(what));
  }
  const nlohmann::ordered_json result = {
      {"seeds", seeds},
      {"answers", totals.answers},
      {"cancelled", totals.cancelled},
      {"timed_out", totals.timed_out},
      {"steps", totals.steps},
      {"cached_tokens", totals.cached_tokens},
      {"preemptions", totals.preemptions},
      {"parkings", totals.parkings},
      {"pauses", totals.pauses},
      {"evictions", totals.evictions},
      {"drafted", totals.drafted},
      {"accepted", totals.accepted},
      {"wrong", wrong},
  };
  std::puts(result.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tokenloop

int main(int argc, char** argv) {
  const auto number = [&](int at, uint32_t otherwise) {
    return argc > at ? static_cast<uint32_t>(std::strtoul(argv[at], nullptr, 10)) : otherwise;
  };
  return tokenloop::Main(number(1, 1), number(2, 100));
}
