#include "engine/prefix_file.h"

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <type_traits>

namespace tokenloop {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is written as memory has it");

constexpr char kMagic[8] = {'T', 'L', 'P', 'R', 'E', 'F', 'I', 'X'};
constexpr uint32_t kVersion = 1;

// A path as the file system wants it: JavaScript's strings are UTF-8 here.
std::filesystem::path PathOf(const std::string& path) { return std::u8string(path.begin(), path.end()); }

class Writer {
 public:
  explicit Writer(const std::filesystem::path& path) : stream_(path, std::ios::binary | std::ios::trunc) {}

  void Bytes(const void* data, size_t size) {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    checksum_ = HashBytes(data, size, checksum_);
    size_ += size;
  }
  template <typename T>
  void Value(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    Bytes(&value, sizeof value);
  }
  bool Close() {
    const uint64_t checksum = checksum_;
    Value(checksum);
    stream_.close();
    return !stream_.fail();
  }
  uint64_t size() const { return size_; }

 private:
  std::ofstream stream_;
  uint64_t checksum_ = 0;
  uint64_t size_ = 0;
};

// Reads from bytes whose checksum is right; still never beyond them.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <typename T>
  bool Value(T& value) {
    if (rest_.size() < sizeof value) return false;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return true;
  }
  template <typename T>
  bool Values(std::vector<T>& values, uint64_t count) {
    if (rest_.size() / sizeof(T) < count) return false;
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), rest_.data(), count * sizeof(T));
    rest_ = rest_.subspan(count * sizeof(T));
    return true;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::span<const uint8_t> rest_;
};

bool ReadRuns(Reader& reader, uint32_t count, std::vector<PrefixFile::Run>& runs) {
  for (uint32_t i = 0; i < count; ++i) {
    PrefixFile::Run run;
    uint32_t ends = 0;
    uint32_t tokens = 0;
    uint64_t state = 0;
    if (!reader.Value(run.parent) || !reader.Value(run.start) || !reader.Value(ends)) return false;
    if (!reader.Value(tokens) || !reader.Values(run.tokens, tokens)) return false;
    if (!reader.Value(state) || !reader.Values(run.state, state)) return false;
    if (ends > 1 || run.parent < -1 || run.parent >= static_cast<int32_t>(i) || run.tokens.empty()) return false;
    const uint64_t before = run.parent < 0 ? 0
                                           : runs[static_cast<size_t>(run.parent)].start +
                                                 runs[static_cast<size_t>(run.parent)].tokens.size();
    if (run.start != before) return false;
    run.ends = ends != 0;
    runs.push_back(std::move(run));
  }
  return reader.done();
}

}  // namespace

uint64_t HashBytes(const void* data, size_t size, uint64_t seed) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15u;
  uint64_t hash = seed ^ (size * kPrime);
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    hash = std::rotl((hash ^ word) * kPrime, 31);
  }
  for (; size > 0; --size, ++bytes) hash = std::rotl((hash ^ *bytes) * kPrime, 31);
  return hash;
}

uint64_t PrefixFile::tokens() const {
  uint64_t count = 0;
  for (const Run& run : runs) count += run.tokens.size();
  return count;
}

Result<uint64_t> WritePrefixFile(const std::string& path, const PrefixFile& file) {
  const auto failed = [&](const std::string& why) {
    return Failure{"file_not_written", 500, "path", "The prompt cache cannot be written to " + path + ": " + why};
  };
  const std::filesystem::path target = PathOf(path);
  std::filesystem::path beside = target;
  beside += ".part";
  std::error_code error;
  Writer writer(beside);
  writer.Bytes(kMagic, sizeof kMagic);
  writer.Value(kVersion);
  writer.Value(static_cast<uint32_t>(file.runs.size()));
  writer.Value(file.fingerprint);
  for (const PrefixFile::Run& run : file.runs) {
    writer.Value(run.parent);
    writer.Value(run.start);
    writer.Value(uint32_t{run.ends ? 1u : 0u});
    writer.Value(static_cast<uint32_t>(run.tokens.size()));
    writer.Bytes(run.tokens.data(), run.tokens.size() * sizeof(int32_t));
    writer.Value(static_cast<uint64_t>(run.state.size()));
    writer.Bytes(run.state.data(), run.state.size());
  }
  if (!writer.Close()) {
    std::filesystem::remove(beside, error);
    return failed("the file system refused it.");
  }
  std::filesystem::rename(beside, target, error);
  if (error) {
    const std::string why = error.message();
    std::filesystem::remove(beside, error);
    return failed(why);
  }
  return writer.size();
}

Result<PrefixFile> ReadPrefixFile(const std::string& path, uint64_t fingerprint) {
  std::error_code error;
  const std::filesystem::path source = PathOf(path);
  const uint64_t size = std::filesystem::file_size(source, error);
  if (error) return Failure{"file_not_found", 404, "path", "There is no prompt cache at " + path + "."};
  const Failure corrupt = {"prefix_file_corrupt", 400, "path", "Not a prompt cache, or a damaged one: " + path};
  const Failure foreign = {"prefix_file_foreign", 400, "path",
                           "The prompt cache at " + path + " belongs to another model or version."};
  uint64_t checksum = 0;
  constexpr size_t kHeader = sizeof kMagic + 2 * sizeof(uint32_t) + sizeof(uint64_t);
  if (size < kHeader + sizeof checksum) return corrupt;
  std::vector<uint8_t> bytes(size);
  std::ifstream stream(source, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) return corrupt;
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return corrupt;
  Reader header(std::span<const uint8_t>(bytes).subspan(sizeof kMagic));
  uint32_t version = 0;
  uint32_t count = 0;
  PrefixFile file;
  header.Value(version);
  if (version != kVersion) return foreign;
  header.Value(count);
  header.Value(file.fingerprint);
  Reader reader(std::span<const uint8_t>(bytes).subspan(kHeader, size - kHeader - sizeof checksum));
  if (!ReadRuns(reader, count, file.runs)) return corrupt;

  // The checksum goes over the pieces as they were written.
  uint64_t hash = 0;
  const auto add = [&](const auto& value) { hash = HashBytes(&value, sizeof value, hash); };
  hash = HashBytes(kMagic, sizeof kMagic, hash);
  add(version);
  add(count);
  add(file.fingerprint);
  for (const PrefixFile::Run& run : file.runs) {
    add(run.parent);
    add(run.start);
    add(uint32_t{run.ends ? 1u : 0u});
    add(static_cast<uint32_t>(run.tokens.size()));
    hash = HashBytes(run.tokens.data(), run.tokens.size() * sizeof(int32_t), hash);
    add(static_cast<uint64_t>(run.state.size()));
    hash = HashBytes(run.state.data(), run.state.size(), hash);
  }
  std::memcpy(&checksum, bytes.data() + size - sizeof checksum, sizeof checksum);
  if (hash != checksum) return corrupt;
  if (file.fingerprint != fingerprint) return foreign;
  return file;
}

}  // namespace tokenloop
