// Chat templates, through llama.cpp's common/chat. Used on the prompt thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/control_text.h"
#include "engine/types.h"

struct llama_model;

namespace tokenloop {

struct RenderedPrompt {
  // To be tokenised one by one, control tokens parsed (see ControlText).
  std::vector<std::string> pieces;
  // Texts that end an answer in this format, beside the request's own stop strings.
  std::vector<std::string> stops;

  std::string Text() const;
};

class ChatTemplates {
 public:
  ~ChatTemplates();

  // `override_source`: a Jinja template that replaces the model's own; empty keeps it. A model without a template gets
  // ChatML, as in llama.cpp. Fails with code "invalid_chat_template".
  static Result<std::unique_ptr<ChatTemplates>> Create(const llama_model* model, const std::string& override_source);

  // `messages`: a JSON array of OpenAI messages. Fails with code "invalid_messages" (400, param "messages"); an error
  // that the template raises is quoted, without its source.
  Result<RenderedPrompt> Render(const std::string& messages) const;

  // Source of the template in use.
  std::string source() const;

 private:
  struct Impl;
  explicit ChatTemplates(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenloop
