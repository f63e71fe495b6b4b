import type { OptionRow } from "../options.js";

/** Flags of `tokenloop bench`, besides the engine's and the temperature. */
// biome-ignore format: a table, one row a line
export const benchOptions = [
  { name: "requests", type: "integer", minimum: 1, maximum: 1000000, default: 64, flag: "requests", description: "Requests in all." },
  { name: "concurrency", type: "integer", minimum: 1, maximum: 4096, default: 8, flag: "concurrency", description: "Most requests at a time; others wait at the client." },
  { name: "rate", type: "number", exclusiveMinimum: 0, maximum: 1000000, default: "", flag: "rate", description: "Requests per second, arriving as a Poisson process; default: as fast as the concurrency lets them." },
  { name: "rampFrom", type: "number", exclusiveMinimum: 0, maximum: 1000000, default: "", flag: "ramp-from", description: "Rate at the start, which then changes in a straight line to --rate." },
  { name: "promptTokens", type: "string", default: "128", flag: "prompt-tokens", description: "Tokens of a prompt, chat template included: N, N..M (uniform), or @FILE with one number a line." },
  { name: "outputTokens", type: "string", default: "64", flag: "output-tokens", description: "Most tokens of an answer, likewise. An answer that ends earlier counts as what it is." },
  { name: "prefixShare", type: "number", minimum: 0, maximum: 1, default: 0, flag: "prefix-share", description: "Part of each prompt that is the same in all of them." },
  { name: "schema", type: "string", default: "", flag: "schema", description: "FILE with a JSON Schema that every answer has to follow (response_format)." },
  { name: "tools", type: "string", default: "", flag: "tools", description: "FILE with a JSON array of tools to offer, as OpenAI's; a target that has none refuses them." },
  { name: "cancelShare", type: "number", minimum: 0, maximum: 1, default: 0, flag: "cancel-share", description: "Part of the requests that is cancelled at a random place of its answer." },
  { name: "benchSeed", type: "integer", minimum: 0, maximum: 4294967295, default: 1, flag: "seed", description: "Seed of everything that is random in the load." },
  { name: "warmUp", type: "integer", minimum: 0, maximum: 100000, default: "", flag: "warm-up", description: "Requests before, not counted; default: twice the concurrency, at most 16." },
  { name: "goodput", type: "string", default: "", flag: "goodput", description: "Limits in milliseconds that make an answer good, e.g. ttft:500,tpot:50,e2el:5000." },
  { name: "timeout", type: "number", exclusiveMinimum: 0, maximum: 86400, default: 600, flag: "timeout", description: "Seconds that a request may take." },
  { name: "extraBody", type: "string", default: "", flag: "extra-body", description: "JSON object of fields for every request, e.g. '{\"ignore_eos\":true}' for a server that knows it." },
  { name: "model", type: "string", default: "", flag: "model", description: "Model that requests name, at a server; default: the first that it lists." },
  { name: "apiKey", type: "string", default: "", flag: "api-key", description: "Key for a server; default: the environment's OPENAI_API_KEY." },
  { name: "serve", type: "boolean", default: false, flag: "serve", description: "Also starts `tokenloop serve` with the same model and options, runs the same load over HTTP, and compares." },
  { name: "bareRounds", type: "integer", minimum: 0, maximum: 100, default: 3, flag: "bare-rounds", description: "Rounds in turns with llama.cpp's bare loop, for the ratio of their speeds; 0: none." },
  { name: "label", type: "string", default: "", flag: "label", description: "Name of the run." },
  { name: "out", type: "string", default: "", flag: "out", description: "Where records go: OUT.json and OUT.html; default: bench-DATE." },
  { name: "json", type: "boolean", default: false, flag: "json", description: "Prints the record in place of the table." },
] as const satisfies readonly OptionRow[];
