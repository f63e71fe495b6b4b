// A prompt cache as a file: which tokens, and what llama.cpp says of the state of their cells. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/types.h"

namespace tokenloop {

// Runs of cells, each after its parent: a tree of prompts that begin alike. What they share is there once.
//
// The format, little endian: "TLPREFIX", version (u32), number of runs (u32), fingerprint of the model (u64); for each
// run parent (i32), start (u32), whether a sequence ends here (u32), tokens (u32 count, i32 each), state (u64 count,
// bytes); at last a checksum of all that (u64). States are llama.cpp's own (llama_state_seq_get_data), which belong to
// one build: the fingerprint has that in it.
struct PrefixFile {
  struct Run {
    int32_t parent = -1;  // index of an earlier run; -1: it begins a prompt
    uint32_t start = 0;   // position of its first token
    bool ends = false;
    std::vector<int32_t> tokens;
    std::vector<uint8_t> state;
  };

  uint64_t fingerprint = 0;
  std::vector<Run> runs;

  uint64_t tokens() const;
};

// Writes to a file beside `path` and renames that, so that there is never half a file. Returns its size in bytes. Fails
// with code "file_not_written" (500).
Result<uint64_t> WritePrefixFile(const std::string& path, const PrefixFile& file);
// Fails with code "file_not_found" (404), "prefix_file_corrupt" (400: no such file of ours, cut short or altered) or
// "prefix_file_foreign" (400: of another model, llama.cpp build or version).
Result<PrefixFile> ReadPrefixFile(const std::string& path, uint64_t fingerprint);

// A hash of bytes, to find damage, not to resist it (multiply and xor of 64 bits at a time, as in FNV-1a).
uint64_t HashBytes(const void* data, size_t size, uint64_t seed = 0);

}  // namespace tokenloop
