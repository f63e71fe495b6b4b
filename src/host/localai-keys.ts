/** What becomes of one of LocalAI's keys. */
export type Rule =
  /** A key of ours of another name. `path`: a file name. `why`: how it differs. */
  | { kind: "own"; to: string; path?: true; why?: string }
  /** An option of `Engine.load`. `unset`: values that stand for LocalAI's or our default. */
  | { kind: "option"; to: string; path?: true; unset?: readonly unknown[]; map?: (value: unknown) => unknown }
  /** A default for a request's field. `why`: said where requests cannot have it here. */
  | { kind: "default"; to: string; unset?: readonly unknown[]; why?: string }
  /** These values say what is so anyway. */
  | { kind: "neutral"; values: readonly unknown[]; why: string }
  | { kind: "unsupported"; why: string }
  /** Says nothing about how a model answers. */
  | { kind: "harmless" };

const own = (to: string, why?: string): Rule => (why === undefined ? { kind: "own", to } : { kind: "own", to, why });
const field = (to: string, ...unset: unknown[]): Rule => ({ kind: "default", to, unset });
const option = (to: string, ...unset: unknown[]): Rule => ({ kind: "option", to, unset });
const neutral = (why: string, ...values: unknown[]): Rule => ({ kind: "neutral", values, why });
const unsupported = (why: string): Rule => ({ kind: "unsupported", why });
const harmless: Rule = { kind: "harmless" };

const goTemplate = unsupported(
  "Go templates are not supported: the model's own Jinja template is used, or tokenloop.options.chatTemplate",
);
const toolFormat = unsupported("tool calls are written and read in the model's own format, by its template");
const pseudoTool = "there is no pseudo-tool: a model that need not call answers in text";
const flashAttention: Rule = {
  kind: "option",
  to: "flashAttention",
  map: (value) => (value === true || value === "true" ? "on" : value === false || value === "false" ? "off" : value),
};

/** Keys that hold keys. */
export const containers = new Set([
  "parameters",
  "template",
  "function",
  "function.grammar",
  "reasoning",
  "feature_flags",
]);

/** LocalAI's keys by their path. */
export const leaves: Readonly<Record<string, Rule>> = {
  name: own("name"),
  "parameters.model": { kind: "own", to: "path", path: true },
  backend: neutral("there is one backend, llama.cpp", "llama-cpp", "llama", "llama-cpp-fallback", ""),

  "parameters.temperature": field("temperature"),
  "parameters.top_p": field("top_p"),
  "parameters.top_k": field("top_k"),
  "parameters.min_p": field("min_p"),
  "parameters.typical_p": field("typical_p"),
  "parameters.max_tokens": field("max_tokens", 0, -1),
  "parameters.seed": field("seed"),
  "parameters.n": field("n", 0),
  "parameters.repeat_penalty": field("repeat_penalty", 0),
  "parameters.repeat_last_n": field("repeat_last_n"),
  "parameters.frequency_penalty": field("frequency_penalty"),
  "parameters.presence_penalty": field("presence_penalty"),
  "parameters.logprobs": field("logprobs"),
  "parameters.top_logprobs": field("top_logprobs"),
  "parameters.logit_bias": field("logit_bias"),
  "parameters.echo": own("echo"),
  "parameters.batch": option("batchSize", 0),
  "parameters.tfz": neutral("tail-free sampling is no longer in llama.cpp", 1, 0),
  "parameters.n_keep": neutral("a full context ends an answer, and nothing is shifted out of it", 0),
  "parameters.ignore_eos": neutral("an answer ends where the model ends it", false),
  "parameters.negative_prompt": neutral("llama.cpp has no negative prompts", ""),
  mirostat: field("mirostat"),
  mirostat_tau: field("mirostat_tau"),
  mirostat_eta: field("mirostat_eta"),
  grammar: field("grammar", ""),
  reasoning_effort: { kind: "default", to: "reasoning_effort", unset: [""], why: "requests cannot have it yet" },
  chat_template_kwargs: { kind: "default", to: "chat_template_kwargs", why: "requests cannot have it yet" },

  context_size: { kind: "option", to: "contextSize", unset: [0], map: (value) => (value === -1 ? "auto" : value) },
  threads: option("threads", 0),
  gpu_layers: option("gpuLayers"),
  batch: option("batchSize", 0),
  mmap: option("mmap"),
  mmlock: option("mlock"),
  flash_attention: flashAttention,
  cache_type_k: option("cacheTypeK", "", "f16"),
  cache_type_v: option("cacheTypeV", "", "f16"),
  f16: neutral("cells are f16; another type is cache_type_k and cache_type_v", true),
  draft_model: { kind: "option", to: "draftModel", path: true, unset: [""] },
  n_draft: option("draftTokens"),
  prompt_cache_all: field("cache_prompt"),

  stopwords: own("stop"),
  cutstrings: own("cutStrings"),
  extract_regex: own("extractRegex"),
  trimspace: own("trimSpace"),
  trimsuffix: own("trimSuffix"),
  system_prompt: own(
    "systemPrompt",
    "it is a system message of requests that have none; LocalAI shows it to templates only",
  ),

  "template.reply_prefix": own("replyPrefix"),
  "template.use_tokenizer_template": neutral("the model's own template is always used", true),
  "template.join_chat_messages_by_character": goTemplate,
  "template.chat": goTemplate,
  "template.chat_message": goTemplate,
  "template.function": goTemplate,
  "template.completion": goTemplate,
  "template.edit": goTemplate,
  "template.multimodal": unsupported("images and sound are not supported"),
  roles: unsupported("the model's own template names the roles"),
  mmproj: unsupported("images and sound are not supported"),

  "function.disable_no_action": neutral(pseudoTool, true),
  "function.no_action_function_name": unsupported(pseudoTool),
  "function.no_action_description_name": unsupported(pseudoTool),
  "function.grammar.parallel_calls": field("parallel_tool_calls"),
  "function.grammar.disable": unsupported("arguments always follow their schema"),

  name_override: harmless,
  description: harmless,
  usage: harmless,
  license: harmless,
  icon: harmless,
  urls: harmless,
  tags: harmless,
  known_usecases: harmless,
  "feature_flags.usage": neutral("usage is counted in any case", true, false),
  debug: harmless,
  embeddings: neutral("embeddings are not supported", false),
  low_vram: neutral("there is no such mode", false),
  numa: neutral("there is no such mode", false),
  prompt_cache_path: unsupported("engine.savePrefix() saves a prompt cache"),
  prompt_cache_ro: unsupported("engine.savePrefix() saves a prompt cache"),
};

/** For what is not in the list, by how it begins. */
export const prefixes: readonly (readonly [string, Rule])[] = [
  ["function.", toolFormat],
  ["reasoning.", unsupported("reasoning is told apart by the model's own template")],
  ["parameters.rope", unsupported("the model's own rotary settings are used")],
  ["rope", unsupported("the model's own rotary settings are used")],
  ["yarn", unsupported("the model's own rotary settings are used")],
  ["lora", unsupported("adapters are not supported")],
];
