// Prompt caches out of the KV cache and into it. Loop thread, between two steps.
#pragma once

#include <string>

#include "engine/cells.h"
#include "engine/decoder.h"
#include "engine/prefix_file.h"
#include "engine/types.h"

namespace tokenloop {

// Everything that the sequences of `key` hold, running ones included. Fails with code "prefix_not_found" (404) when
// that is nothing, "out_of_memory" (500), and "unsupported_model" (400) where the model's state is not made of cells
// that can be taken apart.
Result<PrefixFile> SavePrefix(Cells& cells, Decoder& decoder, const std::string& key);

// Fills cells for `key` from the file and keeps them for reuse; what is there already is not loaded again. Gives up
// other kept sequences for it. Returns the number of tokens that were loaded. Fails with code "prefix_too_large" (400)
// when they do not fit beside what runs, "prefix_file_foreign" (400) when llama.cpp refuses a state, and
// "unsupported_model" (400) as above, or when the engine keeps no prefixes.
Result<uint64_t> RestorePrefix(Cells& cells, Decoder& decoder, const std::string& key, const PrefixFile& file);

}  // namespace tokenloop
