import { BadRequestError } from "../errors.js";
import type { NativeRequest } from "../native.js";
import { type SamplingOptionName, samplingOptions } from "../options.js";
import type { ValidRequest } from "./validate.js";

/**
 * The native request: defaults from the option table, and what only the loaded model can tell. `grammar`: the one that
 * the answer follows, "" for none.
 *
 * @throws {BadRequestError} param "logit_bias": a token id beyond the vocabulary.
 */
export function toNativeRequest(request: ValidRequest, vocabSize: number, grammar: string): NativeRequest {
  for (const [id] of request.logitBias.ids) {
    if (id >= vocabSize) {
      throw new BadRequestError(
        `Invalid key in 'logit_bias': token ${id} is beyond the vocabulary of ${vocabSize} tokens.`,
        "logit_bias",
      );
    }
  }
  const options = Object.fromEntries(
    samplingOptions.map((row) => [row.name, request.sampling[row.name] ?? row.default]),
  ) as Record<SamplingOptionName, number>;
  return {
    messages: JSON.stringify(request.messages),
    maxTokens: request.maxTokens,
    stop: request.stop,
    grammar,
    logprobs: request.logprobs,
    n: request.n,
    cachePrompt: request.cachePrompt,
    cacheKey: request.cacheKey,
    priority: request.priority,
    timeoutMs: request.timeoutMs,
    predictMs: request.predictMs,
    sampling: {
      ...options,
      seed: toSeed(options.seed),
      logit_bias: Float64Array.from(request.logitBias.ids.flat()),
      dry_sequence_breakers: [...request.dryBreakers],
      samplers: [...request.samplers],
      ignore_eos: request.ignoreEos,
      min_tokens: request.minTokens,
    },
  };
}

/** -1 draws a seed; every other integer becomes one of 32 bits. */
function toSeed(seed: number): number {
  if (seed === -1) return -1;
  const modulus = 2 ** 32;
  return ((seed % modulus) + modulus) % modulus;
}
