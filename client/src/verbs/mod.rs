//! The verbs of `toolctl`, in one list. The clap subcommands, quick parsing, dispatch, the ids to resolve, completion, the
//! groups of `--help`, examples and manual pages all come from it.

mod declare;

use crate::cli::{Cli, Global};
use crate::cmd::complete::ProcessFilter;
use crate::cmd::{self, Context, NoArgs};
use crate::error::CliError;
use clap::{Parser, Subcommand};
use declare::verbs;
use std::ffi::OsString;

/// One verb as help and completion need it.
pub struct VerbInfo {
    pub name: &'static str,
    /// The heading that `--help` lists it under. Empty: hidden.
    pub group: &'static str,
    /// The processes that completion offers for its ids.
    pub ids: ProcessFilter,
    #[cfg(test)]
    pub parse: Parse,
    pub examples: &'static [&'static str],
}

/// The way to parse a command line with this verb.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parse {
    /// With the definition of this verb alone. Building all definitions takes longer than a call takes.
    Single,
    /// With the definitions of all verbs: the verb is rare, or its arguments are rewritten first.
    All,
}

verbs! {
    /// Run a command, stream its output, exit with its code
    Run(cmd::run::Args) = "run" {
        group: "Start", parse: Single,
        ids: NoIds |_| Vec::new(), run: |args, cx| cmd::run::run(args, cx).map_err(CliError::of_run),
        examples: [
            "toolctl run -- make test                 # its output, its exit code",
            "toolctl run -t -- vim notes.txt          # Ctrl-\\ leaves it running",
            "toolctl run --detach-after 10s -- make   # then leave it to the daemon",
        ],
    }
    /// Run a command in the background and print its id
    Exec(cmd::exec::Args) = "exec" {
        group: "Start", parse: Single,
        ids: NoIds |args| args.after_ids(), run: cmd::exec::run,
        examples: [
            "toolctl exec --name web --ready-port 8080 --ready-timeout 30s -- ./server",
            "toolctl exec --notify --watch error --watch-re '^FAILED' -c 'make test'",
            "toolctl exec --queue build --after @last -- make deploy",
        ],
    }
    /// Run a script that calls tools, exit with its code; list its calls
    Script(cmd::script::Args) = "script" {
        group: "Tools", parse: All,
        ids: Script |args| args.ids(), run: |args, cx| cmd::script::run(args, cx).map_err(CliError::of_run),
        examples: [
            "toolctl script -c 'from toold_tools import *; print(terminal(\"id\")[\"output\"])'",
            "toolctl script --lang bash -c 'toolctl tool terminal command=uname'",
            "toolctl script calls @last               # what it called",
        ],
    }
    /// Open interpreters that keep their state, and run code in them
    Kernel(cmd::kernel::Args) = "kernel" {
        group: "Tools", parse: All,
        ids: Kernel |args| args.ids(), run: cmd::kernel::run,
        examples: [
            "toolctl kernel open --name py && toolctl kernel run py -c 'x = 6'",
            "toolctl kernel list",
        ],
    }
    /// Call a tool and print its result
    Tool(cmd::tool::Args) = "tool" {
        group: "Tools", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::tool::run,
        examples: [
            "toolctl tool terminal command='uname -s'     # its output, its exit code",
            "toolctl tool search_files pattern=needle limit=5",
            "toolctl tool write_file path=note.txt content=@/etc/hostname",
        ],
    }
    /// List the tools that can be called
    Tools(cmd::tools::Args) = "tools" {
        group: "Tools", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::tools::run,
        examples: ["toolctl tools", "toolctl tools -v file", "toolctl tools --effect read --json | jq -r '.tools[].name'"],
    }
    /// Serve agents over MCP, on stdin and stdout
    Mcp(cmd::mcp::Args) = "mcp" {
        group: "Tools", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::mcp::run,
        examples: [
            "toolctl mcp < /dev/null                  # the settings of an agent run it",
            "toolctl mcp --read-only --session chat-42 < /dev/null",
        ],
    }
    /// List processes, newest first
    List(cmd::list::Args) = "list" {
        group: "Look", parse: Single,
        ids: NoIds |_| Vec::new(), run: cmd::list::run,
        examples: [
            "toolctl list --label team=web --json | jq -r '.processes[].id'",
            "toolctl list --watch --sort cpu",
            "toolctl list -a --session chat-42 --name 'test-*'",
        ],
    }
    /// Show processes live on the whole terminal
    Top(cmd::top::Args) = "top" {
        group: "Look", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::top::run,
        examples: ["toolctl top", "toolctl top --once --filter web"],
    }
    /// Show processes live in a browser
    Web(cmd::web::Args) = "web" {
        group: "Look", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::web::run,
        examples: ["toolctl web                              # prints the address", "toolctl web --write                      # may kill and answer"],
    }
    /// Show a process's status and its latest output
    Poll(cmd::poll::Args) = "poll" {
        group: "Look", parse: Single,
        ids: Any |args| vec![&mut args.id], run: cmd::poll::run,
        examples: ["toolctl poll web", "toolctl poll @last --cursor 4096 --wait 30s"],
    }
    /// Show a process's output; -f follows it
    Log(cmd::log::Args) = "log" {
        group: "Look", parse: Single,
        ids: Any |args| args.ids.iter_mut().collect(), run: cmd::log::run,
        examples: [
            "toolctl log web -f --grep 'error|warn' -C 2",
            "toolctl log web --since 10m --stream stderr",
            "toolctl log -f -t web db 'worker-*'",
            "toolctl log --all --grep 'error|panic'",
        ],
    }
    /// Show the screen of a process's terminal as text
    Screen(cmd::screen::Args) = "screen" {
        group: "Look", parse: Single,
        ids: WithScreen |args| vec![&mut args.id], run: cmd::screen::run,
        examples: ["toolctl screen editor", "toolctl screen @last --json | jq '.cursor'"],
    }
    /// Show everything about one process
    Inspect(cmd::inspect::Args) = "inspect" {
        group: "Look", parse: Single,
        ids: Any |args| vec![&mut args.id], run: cmd::inspect::run,
        examples: ["toolctl inspect web", "toolctl inspect web --json | jq '.tree[].command'"],
    }
    /// Show what confined a process, and what it was refused
    Why(cmd::why::Args) = "why" {
        group: "Look", parse: Single,
        ids: Any |args| vec![&mut args.id], run: cmd::why::run,
        examples: ["toolctl why build", "toolctl why @last --json | jq .sandbox.denials"],
    }
    /// Show past events; -f follows new ones
    Events(cmd::events::Args) = "events" {
        group: "Look", parse: Single,
        ids: Any |args| args.id.iter_mut().collect(), run: cmd::events::run,
        examples: [
            "toolctl events -f --type exited --type watch_match",
            "toolctl events --consumer me --wait 30s --json | jq -r .id",
        ],
    }
    /// List queues, set their slots, pause and resume them
    Queue(cmd::queue::Args) = "queue" {
        group: "Look", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::queue::run,
        examples: [
            "toolctl queue set build --slots 4",
            "toolctl exec --queue build -- make test  # waits for a free slot",
            "toolctl queue",
            "toolctl queue pause build                # what runs goes on",
        ],
    }
    /// Judge a command without running it; read the rules again
    Policy(cmd::policy::Args) = "policy" {
        group: "Look", parse: All,
        ids: Any |args| args.ids(), run: cmd::policy::run,
        examples: ["toolctl policy check -- git push", "toolctl policy check -c 'make && make install'", "toolctl policy reload"],
    }
    /// Show questions that wait for a person; one key decides
    Approvals(cmd::approvals::Args) = "approvals" {
        group: "Decide", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::approvals::run,
        examples: [
            "toolctl approvals -f                     # one after the other, as they come",
            "toolctl approvals --session chat-42 --json | jq -r '.approvals[].id'",
        ],
    }
    /// Approve one of these questions
    Approve(cmd::approve::Args) = "approve" {
        group: "Decide", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::approve::run,
        examples: [
            "toolctl approve appr_0123456789ab",
            "toolctl approve appr_0123456789ab --session   # and the same command again",
        ],
    }
    /// Deny one of these questions
    Deny(cmd::deny::Args) = "deny" {
        group: "Decide", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::deny::run,
        examples: [
            "toolctl deny appr_0123456789ab -m 'use the staging server'",
            "toolctl deny appr_0123456789ab --abort   # and withdraw the rest of its task",
        ],
    }
    /// List what was allowed for the rest of a session
    Grants(cmd::grants::Args) = "grants" {
        group: "Decide", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::grants::run,
        examples: ["toolctl grants", "toolctl grants --session chat-42 --json | jq -r '.grants[].id'"],
    }
    /// Revoke what was allowed for the rest of a session
    Revoke(cmd::revoke::Args) = "revoke" {
        group: "Decide", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::revoke::run,
        examples: ["toolctl revoke --session chat-42", "toolctl revoke --session chat-42 --kill"],
    }
    /// Wait until processes end, print a match, listen or are quiet
    Wait(cmd::wait::Args) = "wait" {
        group: "Wait", parse: Single,
        ids: Any |args| args.ids.iter_mut().collect(), run: cmd::wait::run,
        examples: [
            "toolctl wait build tests --timeout 10m",
            "toolctl wait web --match 'listening on' && toolctl poll web",
            "toolctl wait setup --input",
        ],
    }
    /// Wait until processes end, then notify: desktop, bell or a command
    Notify(cmd::notify::Args) = "notify" {
        group: "Wait", parse: All,
        ids: Any |args| args.ids.iter_mut().collect(), run: cmd::notify::run,
        examples: [
            "toolctl notify build",
            "toolctl notify build --run 'mail -s \"build: $TOOLD_EXIT_CODE\" me < /dev/null'",
        ],
    }
    /// Put a process that has a terminal (exec --pty) on yours
    Attach(cmd::attach::Args) = "attach" {
        group: "Talk to it", parse: Single,
        ids: OnTerminal |args| args.id.iter_mut().collect(), run: cmd::attach::run,
        examples: [
            "toolctl exec --pty --name dev -- bash     # later, from any terminal:",
            "toolctl attach dev                        # Ctrl-\\ leaves it running",
            "toolctl attach -r dev                     # only look; Ctrl-C leaves",
            "toolctl attach dev --detach-keys C-p,C-q  # Ctrl-\\ is the program's",
        ],
    }
    /// Write text to a process's stdin
    Write(cmd::write::Args) = "write" {
        group: "Talk to it", parse: Single,
        ids: WithStdin |args| vec![&mut args.id], run: |args, cx| cmd::write::run(args, cmd::write::End::Open, cx),
        examples: ["toolctl write repl 'no newline'", "tar c . | toolctl write unpack -"],
    }
    /// Write a line to a process's stdin
    Submit(cmd::write::Args) = "submit" {
        group: "Talk to it", parse: Single,
        ids: WithStdin |args| vec![&mut args.id], run: |args, cx| cmd::write::run(args, cmd::write::End::Newline, cx),
        examples: [
            "toolctl submit repl 'print(6 * 7)'",
            "toolctl submit @last yes",
            "toolctl submit --secret setup             # asks for it, and shows nothing",
        ],
    }
    /// Type keys into a process's terminal
    Keys(cmd::keys::Args) = "keys" {
        group: "Talk to it", parse: Single,
        ids: WithStdin |args| vec![&mut args.id], run: cmd::keys::run,
        examples: ["toolctl keys editor Esc :wq Enter", "toolctl keys @last C-c", "toolctl keys menu Down Down Enter"],
    }
    /// Close a process's stdin
    Close(cmd::close::Args) = "close" {
        group: "Talk to it", parse: Single,
        ids: WithStdin |args| vec![&mut args.id], run: cmd::close::run,
        examples: ["toolctl close sort", "toolctl write sort - < list.txt && toolctl close sort"],
    }
    /// Change the size of a process's terminal
    Resize(cmd::resize::Args) = "resize" {
        group: "Talk to it", parse: Single,
        ids: OnTerminal |args| vec![&mut args.id], run: cmd::resize::run,
        examples: ["toolctl resize editor 24x80", "toolctl resize @last 50x132"],
    }
    /// Apply a patch to files, all of it or nothing
    Patch(cmd::patch::Args) = "patch" {
        group: "Files", parse: Single,
        ids: NoIds |_| Vec::new(), run: cmd::patch::run,
        examples: [
            "toolctl patch change.patch",
            "toolctl patch --check < change.patch     # shows the diff, changes nothing",
            "toolctl patch --revert patch_0123456789ab",
        ],
    }
    /// Show, commit or discard the changes of a staged process
    Stage(cmd::stage::Args) = "stage" {
        group: "Files", parse: All,
        ids: Any |args| args.ids(), run: cmd::stage::run,
        examples: [
            "toolctl run --stage -- touch new && toolctl stage diff @last",
            "toolctl run --stage -- touch new && toolctl stage commit @last",
        ],
    }
    /// End processes and everything they started
    Kill(cmd::kill::Args) = "kill" {
        // `-9` and `-TERM` are rewritten first, which needs all definitions.
        group: "End", parse: All,
        ids: Running |args| args.targets.ids.iter_mut().collect(), run: cmd::kill::run,
        examples: ["toolctl kill web 'worker-*'", "toolctl kill -9 @last --grace 0", "toolctl kill --label team=web"],
    }
    /// Send one signal to a process
    Signal(cmd::signal::Args) = "signal" {
        group: "End", parse: Single,
        ids: Running |args| vec![&mut args.id], run: cmd::signal::run,
        examples: ["toolctl signal web HUP", "toolctl signal proc_0b3b USR1"],
    }
    /// End a process and start it again
    Restart(cmd::restart::Args) = "restart" {
        group: "End", parse: Single,
        ids: Any |args| vec![&mut args.id], run: cmd::restart::run,
        examples: ["toolctl restart web", "toolctl restart web --keep-env --grace 30s"],
    }
    /// Stop a process and everything it started, until `resume`
    Pause(cmd::pause::Args) = "pause" {
        group: "End", parse: Single,
        ids: Running |args| vec![&mut args.id], run: cmd::pause::run,
        examples: ["toolctl pause build", "toolctl pause @last"],
    }
    /// Continue a process that is stopped
    Resume(cmd::resume::Args) = "resume" {
        group: "End", parse: Single,
        ids: Running |args| vec![&mut args.id], run: cmd::resume::run,
        examples: ["toolctl resume build", "toolctl resume @last"],
    }
    /// Remove finished processes and their logs
    Forget(cmd::forget::Args) = "forget" {
        group: "End", parse: Single,
        ids: Ended |args| args.ids.iter_mut().collect(), run: cmd::forget::run,
        examples: ["toolctl forget build tests", "toolctl forget --failed --older-than 2h"],
    }
    /// Show the daemon: version, paths, limits, counts
    Info(NoArgs) = "info" {
        group: "The daemon", parse: All,
        ids: NoIds |_| Vec::new(), run: |_, cx| cmd::info::run(cx),
        examples: ["toolctl info", "toolctl info --json | jq .limits"],
    }
    /// Try what a sandbox forbids, and show what this machine refuses
    Sandbox(NoArgs) = "sandbox" {
        group: "The daemon", parse: All,
        ids: NoIds |_| Vec::new(), run: |_, cx| cmd::sandbox::run(cx),
        examples: ["toolctl sandbox", "toolctl sandbox --json | jq .gaps"],
    }
    /// Stop the daemon; processes keep running
    Shutdown(cmd::shutdown::Args) = "shutdown" {
        group: "The daemon", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::shutdown::run,
        examples: ["toolctl shutdown", "toolctl shutdown --kill"],
    }
    /// Let systemd start the daemon and keep it running
    Service(cmd::service::Args) = "service" {
        group: "The daemon", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::service::run,
        examples: ["toolctl service install", "toolctl service status --json"],
    }
    /// Check the installation and suggest fixes
    Doctor(NoArgs) = "doctor" {
        group: "The daemon", parse: All,
        ids: NoIds |_| Vec::new(), run: |_, cx| cmd::doctor::run(cx),
        examples: ["toolctl doctor", "toolctl doctor --json | jq -r '.checks[] | select(.severity != \"ok\").fix'"],
    }
    /// Connect a coding agent or an editor to toold
    Integrate(cmd::integrate::Args) = "integrate" {
        group: "The daemon", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::integrate::run,
        examples: ["toolctl integrate claude-code", "toolctl integrate codex --print   # only show it"],
    }
    /// Answer a hook of a coding agent: what runs, what ended
    Hook(cmd::hook::Args) = "hook" {
        group: "The daemon", parse: Single,
        ids: NoIds |_| Vec::new(), run: cmd::hook::run,
        examples: [
            "toolctl hook --agent codex        # the agent writes JSON to its stdin",
            "toolctl hook --agent claude --on-end kill",
        ],
    }
    /// Explain a command or a topic; `help topics` lists the topics
    Help(cmd::help::Args) = "help" {
        group: "About toolctl", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::help::run,
        examples: ["toolctl help kill", "toolctl help topics"],
    }
    /// Print the completion script for a shell
    Completions(cmd::completions::Args) = "completions" {
        group: "About toolctl", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::completions::run,
        examples: [
            "bash=~/.local/share/bash-completion/completions",
            "mkdir -p $bash && toolctl completions bash > $bash/toolctl",
            "zsh=~/.local/share/zsh/site-functions",
            "mkdir -p $zsh && toolctl completions zsh > $zsh/_toolctl",
            "fish=~/.config/fish/completions",
            "mkdir -p $fish && toolctl completions fish > $fish/toolctl.fish",
        ],
    }
    /// Print or write the manual pages
    Man(cmd::man::Args) = "man" {
        group: "About toolctl", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::man::run,
        examples: ["toolctl man | man -l -", "toolctl man ~/.local/share/man/man1"],
    }
    /// Print what can complete a command line, for the shells' completion scripts
    Complete(cmd::complete::Args) = "__complete" {
        group: "", parse: All,
        ids: NoIds |_| Vec::new(), run: cmd::complete::run,
        examples: [],
    }
}

/// The parser of one verb and none of the others.
#[derive(Debug, Parser)]
struct SingleVerb<A: clap::Args> {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    args: A,
}

fn single<A: clap::Args>(argv: &[OsString], verb: fn(A) -> Verb) -> Option<Cli> {
    let argv = argv.iter().take(1).chain(&argv[2..]);
    let SingleVerb { global, args } = SingleVerb::<A>::try_parse_from(argv).ok()?;
    Some(Cli { global, verb: verb(args) })
}

/// Returns a visible or hidden verb by its name.
pub fn find(name: &str) -> Option<&'static VerbInfo> {
    VERBS.iter().find(|verb| verb.name == name)
}

#[cfg(test)]
mod tests;
