import type { CompletionUsage, Timings } from "../openai/types.js";

interface Timed {
  usage?: CompletionUsage | null;
  timings?: Timings;
}

/**
 * LocalAI's `Extra-Usage` header: milliseconds of the prompt and of the answer beside the token counts. In a stream the
 * times come before the usage: one function sees all chunks of one answer.
 */
export function withExtraUsage(): <Part extends Timed>(part: Part) => Part {
  let timings: Timings | undefined;
  return (part) => {
    timings = part.timings ?? timings;
    if (!part.usage || timings === undefined) return part;
    const { prompt_ms, predicted_ms } = timings;
    return {
      ...part,
      usage: { ...part.usage, timing_prompt_processing: prompt_ms, timing_token_generation: predicted_ms },
    };
  };
}
