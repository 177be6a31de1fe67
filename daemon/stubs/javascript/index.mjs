// Tools of toold as functions. Generated for this script: the functions at the end are what it may call.
//
//     import { tools, gather, result, ToolError } from "toold";
//
// A call returns a promise, rejected with a ToolError. `f.later(args)` is a call that has not begun, for `gather`.
import { readFileSync } from "node:fs";
import path from "node:path";
import { link, ToolDenied, ToolError } from "./link.mjs";

export {
  ToolError, ToolDenied, ToolTimeout, ToolLimit, ToolUnavailable, ToolInvalid, ToolConflict, ToolCancelled, OutcomeUnknown,
} from "./link.mjs";

const NEVER_REPEATED = new Set(["denied", "limit", "invalid_params", "outcome_unknown"]);

/** Sets the value of the script, a JSON value of at most 1 MiB. The last one counts. */
export async function result(value) {
  await link.report({ value: value ?? null });
}

/** Names a file that the script made for its caller. */
export async function artifact(file) {
  await link.report({ artifact: { path: path.resolve(file) } });
}

/** Publishes a line on progress. Does not wait for the daemon; the exit of the process does. */
export function note(text) {
  link.report({ note: Buffer.from(String(text)).toString() }).catch(() => {});
}

/** Runs calls, functions or `f.later(args)`, `parallel` at a time, and returns their results in order. All of them run to
 * their end; then the first error of the list is thrown, if there is one. */
export async function gather(calls, { parallel = 8 } = {}) {
  const items = [...calls];
  const ends = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const at = next++;
      try {
        ends[at] = { value: await (typeof items[at] === "function" ? items[at]() : items[at]) };
      } catch (error) {
        ends[at] = { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(parallel, items.length)) }, work));
  for (const end of ends) if ("error" in end) throw end.error;
  return ends.map((end) => end.value);
}

/** Calls `fn` until it does not fail, at most `times` times, with a pause of `delay` seconds that grows by `factor`. Never
 * repeats a ToolError of kind denied, limit, invalid_params or outcome_unknown. */
export async function retry(fn, { times = 3, delay = 1, factor = 2 } = {}) {
  for (;;) {
    try {
      return await fn();
    } catch (error) {
      if (--times < 1 || NEVER_REPEATED.has(error?.kind)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, delay * 1000));
    delay *= factor;
  }
}

/** Quotes a string for a POSIX shell. */
export function shellQuote(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? String(text) : `'${String(text).replaceAll("'", `'"'"'`)}'`;
}

/** The arguments that the script was given. */
export const args = (() => {
  try {
    return JSON.parse(readFileSync(path.join(process.env.TOOLD_SCRIPT_DIR ?? "", "args.json"), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
})();

const byName = {};

/** Makes a function of a tool. A value that is not a plain object stands for the first parameter. */
function tool(name, first) {
  const given = (args) => {
    if (args === undefined) return {};
    if (typeof args === "object" && args !== null && [Object.prototype, null].includes(Object.getPrototypeOf(args))) return args;
    if (first === undefined) throw new TypeError(`${name} takes an object with its arguments`);
    return { [first]: args };
  };
  const call = (args, options) => link.call(name, given(args), options, call);
  call.later = (args, options) => () => link.call(name, given(args), options, call);
  call.tool = name;
  byName[name] = call;
  return call;
}

/** Makes an object of tools that names what there is when something else is asked for. */
function namespace(path, found) {
  return new Proxy(found, {
    get(target, key) {
      if (typeof key === "symbol" || key in target) return target[key];
      if (Object.hasOwn(byName, path + key)) return byName[path + key];
      if (key === "then" || key === "toJSON") return undefined;
      const known = Object.keys(target).sort().join(", ") || "none";
      const data = { kind: "denied", reason: "not_allowed" };
      throw new ToolDenied(`no tool ${path}${key} for this script; there are: ${known}`, "denied", data, path + key);
    },
  });
}
