// What the token loop needs of a model: decoding, logits, KV cells, and what a token is as text. `Model` is the real
// one; a test can script its own. Everything but the const functions belongs to the loop thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/types.h"
#include "llama.h"

namespace tokenloop {

class Decoder {
 public:
  virtual ~Decoder() = default;

  virtual const ModelInfo& info() const = 0;

  // llama_decode, and waits for its logits. 0: done; 1: no room; 2: aborted; anything else is an error (-3: it threw).
  virtual int32_t Decode(const llama_batch& batch) = 0;
  // Of the batch's token at this index, which asked for an output; valid until the next Decode. Null: there are none.
  virtual const float* Logits(int32_t index) = 0;
  // `callback(data)` is asked on ggml's threads while Decode runs; true aborts it where the backend can.
  virtual void SetAbortCallback(ggml_abort_callback callback, void* data) = 0;

  // The cells of `from` at positions begin..end-1 belong to `to` as well, which has none there.
  virtual void CopyCells(llama_seq_id from, llama_seq_id to, uint32_t begin, uint32_t end) = 0;
  // Takes back the cells from position `from` on.
  virtual void RemoveCells(llama_seq_id sequence, uint32_t from) = 0;
  // Tokens whose cells the sequence has.
  virtual uint32_t CountCells(llama_seq_id sequence) = 0;
  // The position from which on it has them in every layer. More than 0 only where layers look back on a window:
  // llama.cpp gives cells that one sequence alone holds, and that its next token does not look back on, to any other.
  virtual uint32_t FirstCell(llama_seq_id sequence) = 0;
  // The state of a sequence's cells as llama.cpp writes it; empty where that fails.
  virtual std::vector<uint8_t> SaveState(llama_seq_id sequence) = 0;
  // Fills cells of a sequence that has none. False, and still none, where llama.cpp refuses.
  virtual bool LoadState(llama_seq_id sequence, std::span<const uint8_t> state) = 0;

  // Any thread.
  virtual bool EndsGeneration(llama_token token) const = 0;
  // Appends the bytes that a token stands for; control tokens stand for none, unless `with_control` asks for their
  // names. Any thread.
  virtual void AppendPiece(llama_token token, std::string& out, bool with_control = false) const = 0;
};

}  // namespace tokenloop
