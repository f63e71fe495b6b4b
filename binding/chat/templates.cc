#include "chat/templates.h"

#include <exception>
#include <string_view>
#include <utility>

#include "chat.h"
#include "llama.h"
#include "nlohmann/json.hpp"

namespace tokenloop {
namespace {

using Json = nlohmann::ordered_json;

// Fields whose values are names of the protocol, never user text.
bool IsProtocolField(const std::string& key) { return key == "role" || key == "type"; }

// Marks every string a user or a model could have written. The depth is bounded by the façade (nesting limit).
void MarkStrings(Json& value, const ControlText& control) {
  if (value.is_string()) {
    value = control.Mark(value.get_ref<const std::string&>());
    return;
  }
  if (!value.is_structured()) return;
  for (const auto& item : value.items()) {
    if (!value.is_object() || !IsProtocolField(item.key())) MarkStrings(item.value(), control);
  }
}

// llama.cpp wraps what a template raises into a report with the template's source; users get the last line of it.
std::string PlainMessage(const char* what) {
  const std::string text = what;
  const std::string_view marker = "\nError: ";
  const size_t at = text.rfind(marker);
  std::string message = at == std::string::npos ? text : text.substr(at + marker.size());
  const std::string_view prefix = "Jinja Exception: ";
  if (message.starts_with(prefix)) message.erase(0, prefix.size());
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
  return message;
}

std::vector<std::string> ControlTexts(const llama_vocab* vocab) {
  std::vector<std::string> texts;
  const int32_t n_vocab = llama_vocab_n_tokens(vocab);
  for (llama_token token = 0; token < n_vocab; ++token) {
    // What llama.cpp parses in a text only when asked to; user-defined tokens ("<think>") it parses in any text.
    constexpr int kParsed = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN;
    if ((llama_vocab_get_attr(vocab, token) & kParsed) == 0) continue;
    const char* text = llama_vocab_get_text(vocab, token);
    // A token of one character cannot be cut; such texts ("▁" and the like) are ordinary characters.
    if (text != nullptr && std::string_view(text).size() > 1) texts.emplace_back(text);
  }
  return texts;
}

}  // namespace

struct ChatTemplates::Impl {
  common_chat_templates_ptr templates;
  ControlText control;
};

ChatTemplates::ChatTemplates(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplates::~ChatTemplates() = default;

Result<std::unique_ptr<ChatTemplates>> ChatTemplates::Create(const llama_model* model,
                                                             const std::string& override_source) {
  try {
    common_chat_templates_ptr templates = common_chat_templates_init(model, override_source);
    auto impl =
        std::make_unique<Impl>(Impl{std::move(templates), ControlText(ControlTexts(llama_model_get_vocab(model)))});
    return std::unique_ptr<ChatTemplates>(new ChatTemplates(std::move(impl)));
  } catch (const std::exception& error) {
    return Failure{"invalid_chat_template", 400, "chatTemplate",
                   "The chat template cannot be parsed: " + PlainMessage(error.what())};
  }
}

Result<RenderedPrompt> ChatTemplates::Render(const std::string& messages) const {
  try {
    Json array = Json::parse(messages);
    MarkStrings(array, impl_->control);

    common_chat_templates_inputs inputs;
    inputs.messages = common_chat_msgs_parse_oaicompat(common_json::parse(array.dump()));
    inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_NONE;
    // Reasoning is not separated from the answer, so models that can do without are asked to.
    inputs.enable_thinking = false;
    common_chat_params params = common_chat_templates_apply(impl_->templates.get(), inputs);
    return RenderedPrompt{ControlText::Split(params.prompt), std::move(params.additional_stops)};
  } catch (const std::exception& error) {
    return Failure{"invalid_messages", 400, "messages",
                   "The chat template refused the messages: " + PlainMessage(error.what())};
  }
}

std::string ChatTemplates::source() const { return common_chat_templates_source(impl_->templates.get()); }

std::string RenderedPrompt::Text() const {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

}  // namespace tokenloop
