/** A file's text, put in by the bundler (tsdown.config.ts) and by vitest. */
declare module "*?raw" {
  const text: string;
  export default text;
}
