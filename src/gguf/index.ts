import { basename, dirname, join } from "node:path";
import { ModelFileError } from "../errors.js";
import { checkModel } from "./check.js";
import { readGgufFile } from "./read.js";
import type { GgufFile } from "./types.js";

export type { GgufArray, GgufEntry, GgufFile, GgufScalar, GgufTensor } from "./types.js";

/** More files than anybody splits a model into. */
const mostParts = 1024;

/**
 * Reads and checks the header of a model before llama.cpp sees it: of all its files, where it is split into several
 * (`name-00001-of-00003.gguf`). The first of them is returned, and the others beside it.
 *
 * @throws {ModelFileError} `code` and `where` say what is wrong, and `path` in which file.
 */
export async function checkModelFile(path: string): Promise<GgufFile[]> {
  const first = await readGgufFile(path);
  const count = partNumber(first, "split.count");
  if (count === undefined || count <= 1) {
    checkModel(first);
    return [first];
  }
  if (partNumber(first, "split.no") !== 0) {
    throw new ModelFileError(path, "gguf_foreign", null, "this is a later part of a split model: load the first one");
  }
  const suffix = `-00001-of-${String(count).padStart(5, "0")}.gguf`;
  const name = basename(path);
  if (count > mostParts || !name.endsWith(suffix)) {
    throw new ModelFileError(
      path,
      "gguf_corrupt",
      "split.count",
      `the name of part 1 of ${count} must end in ${suffix}`,
    );
  }
  const files = [first];
  for (let part = 2; part <= count; part++) {
    const number = String(part).padStart(5, "0");
    const other = join(dirname(path), name.slice(0, -suffix.length) + suffix.replace("00001", number));
    const file = await readGgufFile(other);
    if (partNumber(file, "split.no") !== part - 1) {
      throw new ModelFileError(other, "gguf_corrupt", "split.no", `it is not part ${part}`);
    }
    files.push(file);
  }
  // Names repeat in no file, nor across them.
  const tensors = files.flatMap((file) => file.tensors);
  if (new Set(tensors.map(({ name }) => name)).size < tensors.length) {
    throw new ModelFileError(path, "gguf_corrupt", null, "a tensor is there in two of its parts");
  }
  checkModel({ ...first, tensors });
  return files;
}

/** llama.cpp reads these as uint16 and ends the process for any other type. */
function partNumber(file: GgufFile, key: string): number | undefined {
  const entry = file.metadata.get(key);
  if (entry === undefined) return undefined;
  if (entry.type !== "uint16" || typeof entry.value !== "number") {
    throw new ModelFileError(file.path, "gguf_corrupt", key, `its type is ${entry.type} and must be uint16`);
  }
  return entry.value;
}
