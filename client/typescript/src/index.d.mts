// The types of the package for `import`: those of `require`.
export * from "./index.js";
