import { largestMinimum } from "./counts.js";
import { escapePointer, invalid, unsupported } from "./error.js";
import { isJsonObject, type Limits, measure } from "./limits.js";
import type { Node, Term } from "./types.js";
import { applicators, assertions, refused } from "./vocabulary.js";

export type SchemaObject = { readonly [keyword: string]: unknown };

/** One schema object of the document. */
export interface Entry {
  schema: SchemaObject;
  pointer: string;
  /** The schema object that "#" means here: the nearest one around with an `$id`, or the whole document. */
  root: SchemaObject;
  depth: number;
}

/** A schema document, checked for form and size, with its references resolvable. Reads the network never. */
export class SchemaDocument {
  private readonly entries: Entry[] = [];
  private readonly terms = new Map<SchemaObject, Term>();
  private readonly byId = new Map<string, SchemaObject>();
  private readonly ids = new Map<SchemaObject, string>();
  private readonly byAnchor = new Map<string, SchemaObject>();
  private readonly falseTerms = new Map<string, Term>();
  private properties = 0;
  private enumValues = 0;
  readonly root: Node;

  constructor(
    document: unknown,
    private readonly limits: Limits,
  ) {
    measure(document, limits);
    this.root = this.load(document, "", isJsonObject(document) ? document : {}, 0);
  }

  entry(term: Term): Entry {
    const entry = this.entries[Math.abs(term) - 1];
    if (entry === undefined) throw new Error(`No schema ${term}.`);
    return entry;
  }

  /** All schema objects taken in so far. */
  all(): readonly Entry[] {
    return this.entries;
  }

  /** The node of a subschema of `parent`; `steps` lead from the parent to it. */
  child(parent: Entry, value: unknown, ...steps: (string | number)[]): Node {
    if (value === true) return [];
    const pointer = join(parent.pointer, steps);
    if (isJsonObject(value)) {
      const term = this.terms.get(value);
      return term === undefined ? this.load(value, pointer, parent.root, parent.depth + 1) : [term];
    }
    return [this.falseTerm(value, pointer, parent)];
  }

  /** What `$ref` of `entry` points at. */
  resolve(entry: Entry, reference: string): Node {
    const hash = reference.indexOf("#");
    const base = hash < 0 ? reference : reference.slice(0, hash);
    let fragment: string;
    try {
      fragment = decodeURIComponent(hash < 0 ? "" : reference.slice(hash + 1));
    } catch {
      throw invalid(entry, "$ref", "malformed percent-encoding.");
    }
    const root =
      base === "" ? entry.root : (this.byId.get(base) ?? this.byId.get(absolute(base, this.idOf(entry.root))));
    if (root === undefined) {
      throw unsupported(entry, "$ref", `'${clip(reference)}' is not in this document; nothing is ever fetched.`);
    }
    let target: unknown = root;
    let pointer = this.terms.has(root) ? this.entry(this.terms.get(root) ?? 1).pointer : "";
    if (fragment !== "" && !fragment.startsWith("/")) {
      target = this.byAnchor.get(anchorKey(this.idOf(root), fragment));
    } else if (fragment !== "") {
      pointer += fragment;
      for (const step of fragment.slice(1).split("/")) {
        const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
        const holder = target;
        if (Array.isArray(holder)) target = /^(0|[1-9]\d*)$/.test(key) ? holder[Number(key)] : undefined;
        else target = isJsonObject(holder) && Object.hasOwn(holder, key) ? holder[key] : undefined;
      }
    }
    if (target === true) return [];
    if (target === false) return [this.falseTerm(false, pointer, entry)];
    if (!isJsonObject(target)) throw invalid(entry, "$ref", `'${clip(reference)}' points at no schema.`);
    const known = this.terms.get(target);
    return known === undefined ? this.load(target, pointer, root, entry.depth + 1) : [known];
  }

  private falseTerm(value: unknown, pointer: string, parent: Entry): Term {
    if (value !== false) throw invalid({ pointer }, "", `expected a schema (an object, true or false).`);
    // "Not anything", under its own pointer.
    let term = this.falseTerms.get(pointer);
    if (term === undefined) {
      term = -this.entries.push({ schema: {}, pointer, root: parent.root, depth: parent.depth + 1 });
      this.falseTerms.set(pointer, term);
    }
    return term;
  }

  private idOf(root: SchemaObject): string {
    return this.ids.get(root) ?? "";
  }

  /** Takes in a schema and all that it holds. Iterative: the depth is the input's. */
  private load(value: unknown, pointer: string, root: SchemaObject, depth: number): Node {
    if (value === true) return [];
    if (value === false) return [this.falseTerm(false, pointer, { schema: {}, pointer, root, depth })];
    if (!isJsonObject(value)) throw invalid({ pointer }, "", "expected a schema (an object, true or false).");
    const queue: Entry[] = [{ schema: value, pointer, root, depth }];
    for (let entry = queue.pop(); entry !== undefined; entry = queue.pop()) {
      if (this.terms.has(entry.schema)) continue;
      if (entry.depth > this.limits.depth) {
        throw unsupported(entry, "", `nested deeper than ${this.limits.depth} schemas.`);
      }
      if (typeof entry.schema.$id === "string" && !entry.schema.$id.startsWith("#")) {
        const outer = this.idOf(entry.root);
        entry.root = entry.schema;
        const id = absolute(entry.schema.$id.replace(/#$/, ""), outer);
        this.ids.set(entry.schema, id);
        this.byId.set(id, entry.schema);
      }
      const anchor =
        entry.schema.$anchor ??
        entry.schema.$dynamicAnchor ??
        (String(entry.schema.$id ?? "").startsWith("#") ? String(entry.schema.$id).slice(1) : undefined);
      if (typeof anchor === "string") this.byAnchor.set(anchorKey(this.idOf(entry.root), anchor), entry.schema);
      this.terms.set(entry.schema, this.entries.push(entry));
      this.check(entry);
      this.collect(entry, queue);
    }
    return [this.terms.get(value) ?? 0];
  }

  private check(entry: Entry): void {
    const { schema } = entry;
    for (const keyword of Object.keys(schema)) {
      const value = schema[keyword];
      if (refused.includes(keyword)) throw unsupported(entry, keyword, `${keyword} is not supported.`);
      if (!Object.hasOwn(assertions, keyword)) continue;
      const assertion = assertions[keyword];
      if (assertion !== undefined && !assertion[0](value)) throw invalid(entry, keyword, `expected ${assertion[1]}.`);
    }
    for (const keyword of ["minLength", "minItems", "minProperties", "minContains"]) {
      if (Number(schema[keyword] ?? 0) > largestMinimum) {
        throw unsupported(entry, keyword, `more than ${largestMinimum} is not supported.`);
      }
    }
    if (isJsonObject(schema.properties)) this.properties += Object.keys(schema.properties).length;
    if (Array.isArray(schema.enum)) this.enumValues += schema.enum.length;
    if (this.properties > this.limits.properties) {
      throw unsupported(entry, "properties", `more than ${this.limits.properties} properties in all.`);
    }
    if (this.enumValues > this.limits.enumValues) {
      throw unsupported(entry, "enum", `more than ${this.limits.enumValues} enum values in all.`);
    }
  }

  private collect(entry: Entry, queue: Entry[]): void {
    const found: Entry[] = [];
    const add = (value: unknown, ...steps: (string | number)[]): void => {
      if (typeof value === "boolean") return;
      const pointer = join(entry.pointer, steps);
      if (!isJsonObject(value)) throw invalid({ pointer }, "", "expected a schema (an object, true or false).");
      found.push({ schema: value, pointer, root: entry.root, depth: entry.depth + 1 });
    };
    const addList = (keyword: string, list: unknown): void => {
      if (!Array.isArray(list)) throw invalid(entry, keyword, "expected an array of schemas.");
      if (list.length === 0 && keyword !== "items") throw invalid(entry, keyword, "expected at least one schema.");
      list.forEach((item, i) => {
        add(item, keyword, i);
      });
    };
    for (const [keyword, value] of Object.entries(entry.schema)) {
      if (keyword === "items") {
        if (Array.isArray(value)) addList(keyword, value);
        else add(value, keyword);
      } else if (keyword === "dependencies") {
        if (!isJsonObject(value)) throw invalid(entry, keyword, "expected an object.");
        for (const [name, inner] of Object.entries(value)) if (!Array.isArray(inner)) add(inner, keyword, name);
      } else if (Object.hasOwn(applicators, keyword)) {
        const shape = applicators[keyword];
        if (shape === "schema") add(value, keyword);
        else if (shape === "schemas") addList(keyword, value);
        else if (isJsonObject(value)) for (const [name, inner] of Object.entries(value)) add(inner, keyword, name);
        else throw invalid(entry, keyword, "expected an object of schemas.");
      }
    }
    // The queue is a stack: reversed, so that the document's order is kept.
    for (const item of found.reverse()) queue.push(item);
  }
}

/** A URI reference against its base, where both are URIs; else as it stands. */
function absolute(reference: string, base: string): string {
  try {
    return new URL(reference, base === "" ? undefined : base).href;
  } catch {
    return reference;
  }
}

function join(pointer: string, steps: readonly (string | number)[]): string {
  return steps.reduce<string>((at, step) => `${at}/${escapePointer(String(step))}`, pointer);
}

function anchorKey(id: string, anchor: string): string {
  return `${id}#${anchor}`;
}

function clip(value: string): string {
  return value.length > 100 ? `${value.slice(0, 100)}…` : value;
}
