// Checks openrpc.json in the working directory against the meta schema, its examples against their schemas, and writes
// the types that the generator makes of it to api.ts.
const fs = require("fs");
const Ajv = require("ajv");
const { parseOpenRPCDocument, validateOpenRPCDocument } = require("@open-rpc/schema-utils-js");
const Typings = require("@open-rpc/typings").default;

// TypeScript names longer than this are no names: the generator joins the names of all fields where a title is missing.
const MAX_NAME_LEN = 120;

function read() {
  return JSON.parse(fs.readFileSync("openrpc.json", "utf8"));
}

async function main() {
  const valid = validateOpenRPCDocument(read());
  if (valid !== true) throw valid;

  const whole = read();
  const ajv = new Ajv({ unknownFormats: "ignore", logger: false });
  const check = (what, schema, value) => {
    const validate = ajv.compile({ ...schema, components: whole.components });
    if (!validate(value)) throw new Error(`${what}: ${JSON.stringify(validate.errors)}\n${JSON.stringify(value)}`);
  };
  for (const method of [...whole.methods, ...whole["x-notifications"]]) {
    for (const example of method.examples) {
      for (const { name, value } of example.params) {
        check(`${method.name}: ${name}`, method.params.find((param) => param.name === name).schema, value);
      }
      if (method.result) check(`${method.name}: result`, method.result.schema, example.result.value);
    }
  }

  // The generator makes identifiers of the names of parameters, and `new` of fs.edit is none.
  const named = read();
  for (const param of named.methods.flatMap((method) => method.params)) if (param.name === "new") param.name = "new_";
  const types = new Typings(await parseOpenRPCDocument(named)).toString("typescript");
  fs.writeFileSync("api.ts", types);
  // The one name that no document can shorten is that of the union of all types, which the generator adds.
  const declared = [...types.matchAll(/^export (?:type|interface) (\S+)/gm)].map(([, name]) => name);
  const long = declared.filter((name) => name.length > MAX_NAME_LEN);
  if (long.length > 1) throw new Error(`the generator made ${long.length} long names: ${long[0]}`);
}

main().catch((error) => {
  console.error(error.message ?? error);
  process.exit(1);
});
