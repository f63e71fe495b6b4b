/**
 * The program of the thread that compiles schemas (compile-thread.ts owns it). Says "ready" once it is loaded, then
 * answers each job with its outcome, in order. An error that is no SchemaError ends the thread; its owner hears of it.
 */
import { parentPort } from "node:worker_threads";
import { runSchemaJob, type SchemaJob } from "./job.js";

// A little less than the owner's deadline: this one can say which part of the schema it was.
const milliseconds = 950;

parentPort?.on("message", (job: SchemaJob) => {
  parentPort?.postMessage(runSchemaJob(job, { milliseconds }));
});
parentPort?.postMessage("ready");
