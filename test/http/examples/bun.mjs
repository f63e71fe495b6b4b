// Bun: `bun bun.mjs model.gguf` prints its address. The package's name in a project of yours is "tokenloop".
import { Engine } from "../../../dist/index.js";

const engine = await Engine.load({ model: process.argv[2] ?? "", threads: 1 });
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 255, fetch: engine.fetch });
console.log(server.url.href);
