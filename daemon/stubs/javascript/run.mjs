// Runner of a JavaScript script: imports it as a module, reports an uncaught exception on the channel. A script that calls
// no tool and ends well loads nothing else.
import { readFileSync } from "node:fs";
import module from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const file = process.env.TOOLD_SCRIPT_FILE;
const script = file ? path.resolve(file) : path.join(here, "main.mjs");
const address = pathToFileURL(script).href;
process.argv.splice(1, process.argv.length, script);
process.on("uncaughtException", (error) => {
  if (process.listenerCount("uncaughtException") === 1) end(error);
});

/** Hooks cost a thread, so only code that imports more than "toold" and node's own modules gets them. */
function needsHooks() {
  if (file) return /(["'`])toold\1/.test(readFileSync(script, "utf8")) || !/\.[cm]?[jt]s$/.test(script);
  const source = readFileSync(script, "utf8");
  if (/\bimport\s*\(\s*[^"'\s]/.test(source)) return true;
  const named = source.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*(["'])(.*?)\1/g);
  return [...named].some(([, , name]) => name !== "toold" && !module.isBuiltin(name));
}

async function addHooks() {
  const stub = pathToFileURL(path.join(here, "node_modules/toold/index.mjs")).href;
  const base = file ? undefined : pathToFileURL(path.join(process.cwd(), "main.mjs")).href;
  const data = { stub, base, main: address };
  const hooks = new URL("node_modules/toold/hooks.mjs", import.meta.url);
  if (typeof module.registerHooks === "function") {
    const { redirect } = await import(hooks);
    module.registerHooks({
      resolve(specifier, context, next) {
        const [found, parentURL] = redirect(specifier, context.parentURL, data);
        return next(found, { ...context, parentURL });
      },
    });
  } else if (typeof module.register === "function") {
    module.register(hooks.href, { data });
  } else if (file) {
    throw new Error(`node ${process.versions.node} cannot find "toold" from ${script}: use node 18.19 or later, or import ${stub}`);
  }
}

/** Returns the text that node prints for a script that it cannot parse: only this has the line. */
async function syntax() {
  const { spawnSync } = await import("node:child_process");
  const check = spawnSync(process.execPath, ["--check", script], { encoding: "utf8" });
  return check.status === 0 ? undefined : check.stderr;
}

/** Prints the stack, reports it, and exits. */
let ending = false;
async function end(error) {
  if (ending) return;
  ending = true;
  process.exitCode = 1;
  const { link, describe } = await import(new URL("node_modules/toold/link.mjs", import.meta.url));
  const places = [address, script].map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  const place = new RegExp(`(?:${places}):(\\d+)`);
  const description = describe(error, (line) => place.exec(line));
  if (error instanceof SyntaxError && description.line === null) {
    const text = await syntax();
    const found = text && place.exec(text);
    if (found) Object.assign(description, { line: Number(found[1]), traceback: text });
  }
  if (error?.cause !== undefined) {
    const { inspect } = await import("node:util");
    description.traceback += `caused by: ${inspect(error.cause)}\n`;
  }
  process.stderr.write(description.traceback);
  await link.report({ error: description }).catch(() => {}); // refused: stderr has the stack
  process.exit(1);
}

try {
  if (needsHooks()) await addHooks();
  await import(address);
} catch (error) {
  await end(error);
}
