// Checks the Lua files with stylua, or writes them: node format.mjs DIRECTORY-OF-STYLUA [--write]
// The npm package is the library; the settings are those of .stylua.toml.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [directory, mode] = process.argv.slice(2);
const stylua = createRequire(import.meta.url)(join(directory, "stylua_lib_node.cjs"));
const root = dirname(dirname(fileURLToPath(import.meta.url)));

const settings = Object.fromEntries(
  readFileSync(join(root, ".stylua.toml"), "utf8")
    .split("\n")
    .filter((line) => line.includes("="))
    .map((line) => line.split("=").map((part) => part.trim().replaceAll('"', ""))),
);
const config = () => {
  const made = stylua.Config.new();
  made.column_width = Number(settings.column_width);
  made.indent_width = Number(settings.indent_width);
  made.indent_type = stylua.IndentType[settings.indent_type];
  made.quote_style = stylua.QuoteStyle[settings.quote_style];
  made.call_parentheses = stylua.CallParenType[settings.call_parentheses];
  return made;
};

let wrong = 0;
for (const name of readdirSync(root, { recursive: true }).filter((name) => name.endsWith(".lua"))) {
  const path = join(root, name);
  const before = readFileSync(path, "utf8");
  const after = stylua.formatCode(before, config(), undefined, stylua.OutputVerification.Full);
  if (before === after) continue;
  wrong += 1;
  if (mode === "--write") writeFileSync(path, after);
  else console.log(`not formatted: ${name}`);
}
process.exit(wrong > 0 && mode !== "--write" ? 1 : 0);
