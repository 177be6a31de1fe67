//! Generates the types and method signatures of the Python and TypeScript clients from the one list of methods, and compares
//! them with the files in `client/`. The connection of a client is written by hand.

mod model;
mod python_methods;
mod python_types;
mod typescript;

use model::Model;
use std::path::Path;

/// The opening of a generated file, after the sign of a comment.
const HEADER: &str =
    "Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.";

/// The generated files, below `client/`.
fn files(model: &Model) -> Vec<(&'static str, String)> {
    vec![
        ("python/toold/types.py", python_types::types(model)),
        ("python/toold/_kinds.py", python_types::kinds(model)),
        ("python/toold/_fields.pyi", python_types::fields(model)),
        ("python/toold/_methods.py", python_methods::runtime(model)),
        ("python/toold/_methods.pyi", python_methods::stub(model)),
        ("typescript/src/types.d.ts", typescript::types(model)),
        ("typescript/src/methods.d.ts", typescript::methods(model)),
        ("typescript/src/kinds.d.ts", typescript::kinds(model)),
        ("typescript/src/methods.js", typescript::table(model)),
        ("typescript/src/index.mjs", typescript::module(model)),
    ]
}

#[test]
fn the_clients_have_the_methods_and_types_of_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../client");
    let mut stale = Vec::new();
    for (name, text) in files(&Model::of(&crate::openrpc::document())) {
        let path = root.join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().expect("a file")).expect("the repository is writable");
            std::fs::write(&path, &text).expect("the repository is writable");
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "review the change of the protocol, then run with UPDATE_GOLDEN=1: {stale:?}");
}
