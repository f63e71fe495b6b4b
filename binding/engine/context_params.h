// How the engine's options become llama.cpp's parameters: one place for loading and for estimating. Pure functions.
#pragma once

#include "engine/types.h"
#include "llama.h"

namespace tokenloop {

llama_model_params ModelParams(const EngineConfig& config);

// Whether cells can be taken back one by one; the state of a recurrent model is per sequence and cannot be shared in
// part.
bool IsDivisible(const llama_model* model);

llama_context_params ContextParams(const EngineConfig& config, const llama_model* model);

// Of a draft model beside a context of so many cells.
llama_model_params DraftModelParams(const EngineConfig& config);
llama_context_params DraftContextParams(const EngineConfig& config, uint32_t context_size);

}  // namespace tokenloop
