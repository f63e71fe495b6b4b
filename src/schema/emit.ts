import { type Context, nodeKey, normal } from "./context.js";
import type { Decimal } from "./decimal.js";
import { emitArray } from "./emit-array.js";
import { emitNumber } from "./emit-number.js";
import { emitObject } from "./emit-object.js";
import { emitString } from "./emit-string.js";
import { alt, type Expr, Rules, rule, text } from "./gbnf.js";
import { JsonRules } from "./json-rules.js";
import { type Alternative, allKinds, anything, type Bound, kinds, type Node } from "./types.js";

/** Writes nodes as rules, one rule for each node however often it is used, so recursive schemas come to an end. */
export class Emitter {
  readonly rules = new Rules();
  readonly json: JsonRules;
  /** Expressions that several nodes share, under a key that says all about them. */
  private readonly shared = new Map<string, Expr>();
  private readonly numbers = new Map<object, number>();
  private readonly names = new Map<string, string>();
  private readonly queue: [name: string, node: Node][] = [];

  constructor(
    readonly context: Context,
    space: Expr,
  ) {
    this.json = new JsonRules(this.rules, space);
  }

  /** A rule for the JSON texts whose values satisfy `node`; written later, from a queue, not by recursion. */
  node(node: Node): Expr {
    if (node.length === 0) return this.json.value();
    const key = nodeKey(node);
    let name = this.names.get(key);
    if (name === undefined) {
      name = this.names.size === 0 ? "root" : this.rules.fresh("v");
      this.names.set(key, name);
      this.queue.push([name, normal(node)]);
    }
    return rule(name);
  }

  /** Builds an expression once for each `key`. */
  share(key: string, build: () => Expr): Expr {
    let expr = this.shared.get(key);
    if (expr === undefined) {
      expr = build();
      this.shared.set(key, expr);
    }
    return expr;
  }

  /** A number for an object's identity. */
  identify(object: object): number {
    let id = this.numbers.get(object);
    if (id === undefined) {
      id = this.numbers.size;
      this.numbers.set(object, id);
    }
    return id;
  }

  finish(): void {
    for (let item = this.queue.shift(); item !== undefined; item = this.queue.shift()) {
      const [name, node] = item;
      this.rules.set(name, alt(...this.context.expand(node).map((a) => this.alternative(a))));
    }
  }

  private alternative(a: Alternative): Expr {
    if (a === anything) return this.json.value();
    if (a.values !== undefined) return alt(...a.values.map((value) => text(JSON.stringify(value))));
    const out: Expr[] = [];
    if ((a.kinds & kinds.object) !== 0) out.push(emitObject(this, a));
    if ((a.kinds & kinds.array) !== 0) out.push(emitArray(this, a));
    if ((a.kinds & kinds.string) !== 0) out.push(this.share(stringKey(this, a), () => emitString(this, a)));
    if ((a.kinds & (kinds.integer | kinds.fraction)) !== 0)
      out.push(this.share(numberKey(a), () => emitNumber(this, a)));
    if ((a.kinds & kinds.true) !== 0) out.push(text("true"));
    if ((a.kinds & kinds.false) !== 0) out.push(text("false"));
    if ((a.kinds & kinds.null) !== 0) out.push(text("null"));
    return a.kinds === allKinds && out.length === 0 ? this.json.value() : alt(...out);
  }
}

function stringKey(emitter: Emitter, a: Alternative): string {
  return `string ${a.minLength} ${a.maxLength} ${a.strings.map((part) => emitter.identify(part)).join()}`;
}

function numberKey(a: Alternative): string {
  const show = ({ digits, scale }: Decimal): string => `${digits}e-${scale}`;
  const bound = (b: Bound | undefined): string => (b === undefined ? "" : `${b.exclusive ? "x" : "i"}${show(b.value)}`);
  const numbers = a.kinds & (kinds.integer | kinds.fraction);
  const parts = [numbers, bound(a.lower), bound(a.upper), a.multiples.map(show).join(), a.indivisible.map(show).join()];
  return `number ${parts.join(" ")}`;
}
