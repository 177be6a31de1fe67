//! The Neovim plugin in real editors: its tests in Lua, the oldest and the newest Neovim, overseer.nvim if there is a checkout.
//!
//! `tests/door-programs-nvim` installs the editors. overseer.nvim is on no registry of packages: `TOOLD_OVERSEER`, or
//! `target/door-programs/overseer.nvim`, is a checkout of it.

use std::path::{Path, PathBuf};
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, skip_unless};

/// The releases of Debian that the editors come from: Neovim 0.10, the oldest that we support, and the newest.
const EDITORS: [&str; 2] = ["nvim-trixie", "nvim-sid"];
/// The editors that overseer.nvim supports: 0.11 and later.
const OVERSEER_EDITORS: [&str; 1] = ["nvim-sid"];

/// The directory of the programs that the tests of the doors run.
fn programs() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().join("door-programs")
}

fn plugin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("client/editors/nvim")
}

/// Runs a file of tests in each of the editors, each with a daemon of its own, which the plugin starts.
fn run_lua(file: &str, editors: &[&str], env: &[(&str, &str)]) {
    for editor in editors {
        let program = programs().join(editor).join("nvim");
        if skip_unless(program.exists(), &format!("{editor} is not installed; run tests/door-programs-nvim")) {
            continue;
        }
        let rig = Daemon::prepare("", env);
        let path = plugin().join("tests").join(file).display().to_string();
        let mut command = rig.tool("timeout", &["180"]);
        command.arg(&program).args(["--clean", "--headless", "-l", &path]).env("TOOLD_TEST_NVIM", &program);
        // Longer than other tests may take: a file has many of them, one after the other.
        let output = command.output().unwrap();
        let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (printed(&output.stdout), printed(&output.stderr));
        assert!(output.status.success(), "{editor} {file}: {}\n{out}\n{err}", output.status);
    }
}

#[test]
fn texts_messages_and_the_help_hold_in_the_oldest_and_the_newest_neovim() {
    run_lua("pure.lua", &EDITORS, &[]);
}

#[test]
fn neovim_reconnects_to_a_daemon_that_was_killed_reports_it_once_and_loses_no_event() {
    run_lua("connection.lua", &EDITORS, &[]);
}

#[test]
fn the_list_logs_and_questions_of_neovim_are_live() {
    run_lua("views.lua", &EDITORS, &[]);
}

#[test]
fn commands_of_neovim_run_in_the_daemon_and_outlive_the_editor() {
    run_lua("commands.lua", &EDITORS, &[]);
}

#[test]
fn tasks_of_overseer_outlive_the_editor_and_come_back_whole() {
    let checkout = std::env::var_os("TOOLD_OVERSEER").map_or_else(|| programs().join("overseer.nvim"), PathBuf::from);
    let why = "overseer.nvim is not there; set TOOLD_OVERSEER to a checkout";
    if skip_unless(checkout.join("lua/overseer/init.lua").exists(), why) {
        return;
    }
    run_lua("overseer.lua", &OVERSEER_EDITORS, &[("TOOLD_OVERSEER", checkout.to_str().unwrap())]);
}

#[test]
fn the_lua_files_are_formatted_by_stylua() {
    let stylua = programs().join("stylua/node_modules/@johnnymorganz/stylua");
    if skip_unless(stylua.exists(), "stylua is not installed; run tests/door-programs-nvim") {
        return;
    }
    let rig = Daemon::prepare("", &[]);
    let script = plugin().join("tests/format.mjs");
    let output = output_of(rig.tool("node", &[script.to_str().unwrap(), stylua.to_str().unwrap()]).spawn().unwrap());
    assert_eq!((output.code, output.stdout), (0, String::new()), "{}", output.stderr);
}

#[test]
fn luacheck_has_no_warning() {
    let rig = Daemon::prepare("", &[]);
    let is_there = rig.tool("luacheck", &["--version"]).output().is_ok_and(|output| output.status.success());
    if skip_unless(is_there, "luacheck is not installed") {
        return;
    }
    let mut command = rig.tool("luacheck", &["--no-color", "--quiet", "--no-cache", "."]);
    let output = output_of(command.current_dir(plugin()).spawn().unwrap());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}
