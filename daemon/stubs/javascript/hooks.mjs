// Module hooks: "toold" is this package from wherever it is imported, and code that has no file of its own imports as if
// it were a file of the working directory. `initialize` has the addresses.
let stub, base, main;

export function initialize(data) {
  ({ stub, base, main } = data);
}

/** Returns the specifier and the parent to resolve it from. */
export function redirect(specifier, parent, { stub, base, main }) {
  if (specifier === "toold") return [stub, parent];
  const isMain = parent === undefined || parent === main || parent.startsWith(main + "?");
  return [specifier, isMain && base !== undefined ? base : parent];
}

export async function resolve(specifier, context, next) {
  const [found, parentURL] = redirect(specifier, context.parentURL, { stub, base, main });
  return next(found, { ...context, parentURL });
}
