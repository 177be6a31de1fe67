//! Judgements by table: calls, sessions and rules beside their verdicts.

use crate::{
    ApprovalMode, BadFile, Call, DangerAction, Judgement, Program, RuleFile, Rules, SessionPolicy, Unmatched, Verdict,
    What, judge, needs_no_search,
};
use std::path::{Path, PathBuf};

const RULES: &str = r#"
[[rule]]
prefix = ["git", ["status", "diff"]]
verdict = "allow"
unless = ["--output", "--ext-diff"]
match = ["git status -s", "git diff && git status"]
not_match = ["git push", "git diff --output=/x", "git diff --output x", "git status > x", "git status && git push"]

[[rule]]
prefix = ["ls"]
verdict = "allow"
sandbox = "read-only"

[[rule]]
prefix = ["git", "push"]
verdict = "ask"
reason = "changes the remote"
match = ["git -C /x push", "sudo git push", "x=$(git push)", "/usr/bin/git push"]
not_match = ["git commit -m push", "echo git push"]

[[rule]]
prefix = ["curl"]
verdict = "deny"
reason = "no downloads"
"#;

fn file(name: &str, text: &str) -> RuleFile {
    RuleFile::parse(name, text).expect("valid rules")
}

fn rules() -> Rules {
    Rules { files: vec![file("10.toml", RULES)], bad: Vec::new() }
}

/// Programs are in /usr/bin, apart from `evil`, which is in the working directory.
fn resolve(word: &str) -> Option<Program> {
    let found = match word {
        "evil" => PathBuf::from("/work/bin/evil"),
        "missing" => return None,
        absolute if absolute.starts_with('/') => PathBuf::from(absolute),
        relative if relative.contains('/') => Path::new("/work").join(relative.trim_start_matches("./")),
        name => Path::new("/usr/bin").join(name),
    };
    Some(Program { real: found.clone(), found, replaceable: word == "replaceable" })
}

fn judged(
    what: What<'_>,
    session: SessionPolicy,
    rules: &Rules,
    set_names: &[&str],
    home_is_writable: bool,
) -> Judgement {
    let set_names: Vec<String> = set_names.iter().map(|name| name.to_string()).collect();
    let writable = [PathBuf::from("/work")];
    let call = Call { what, set_names: &set_names, resolve: &resolve, writable: &writable, home_is_writable };
    judge(&call, &session, rules)
}

fn text(text: &str) -> What<'_> {
    What::Shell { text, shell: "/bin/bash", login: false }
}

const UNTRUSTED: SessionPolicy =
    SessionPolicy { approval: ApprovalMode::Untrusted, unmatched: Unmatched::Allow, danger: DangerAction::Ask };

#[test]
fn the_strictest_verdict_over_all_commands_wins() {
    let cases = [
        ("git status", Verdict::Allow),
        ("git status -s | ls", Verdict::Allow),
        ("git status && make", Verdict::Ask),
        ("git status $(ls)", Verdict::Ask),
        ("git push", Verdict::Ask),
        ("git status && curl x", Verdict::Deny),
        ("git status; git push; curl x", Verdict::Deny),
        ("bash -c 'git status && ls'", Verdict::Allow),
        ("bash -c 'git status > x'", Verdict::Ask),
        ("sh -c \"sh -c 'ls'\"", Verdict::Allow),
        ("bash -x -c ls", Verdict::Ask),
        ("evil", Verdict::Ask),
        ("./ls", Verdict::Ask),
        ("cd src && ls", Verdict::Ask),
        ("git diff --output=/etc/x", Verdict::Ask),
    ];
    for (given, expected) in cases {
        assert_eq!(judged(text(given), UNTRUSTED, &rules(), &[], false).verdict, expected, "{given}");
    }
    let relaxed = SessionPolicy::default();
    assert_eq!(judged(text("make"), relaxed, &rules(), &[], false).verdict, Verdict::Allow);
    let asking = SessionPolicy { unmatched: Unmatched::Ask, ..relaxed };
    assert_eq!(judged(text("make"), asking, &rules(), &[], false).verdict, Verdict::Ask);
}

#[test]
fn a_denied_command_is_found_wherever_it_is() {
    let hidden = [
        "$(curl x)",
        "echo \"$(curl x)\"",
        "echo `curl x`",
        "for i in 1; do curl x; done",
        "if true; then curl x; fi",
        "sudo -u a curl x",
        "env A=b curl x",
        "xargs -n 1 curl",
        "trap 'curl x' EXIT",
        "sh -c 'curl x'",
        "bash -lc \"env sh -c 'curl x'\"",
        "eval curl x",
        "eval 'curl x'",
        "c\\url x",
        "'curl' x",
        "c''url x",
        "/usr/bin/curl x",
        "A=1 curl x",
        "x=curl; $x y",
        "${x:-curl} y",
        "$(echo curl) x",
        "$(which curl) x",
        "$'\\x63url' x",
        "{curl,x}",
        "/usr/bin/cur? x",
        "! curl x",
        "(curl x)",
        "{ curl x; }",
        "a & curl x",
        "a |& curl x",
        "cat <(curl x)",
        "sh <<EOF\ncurl x\nEOF",
        "sh <<<'curl x'",
        "echo curl x | sh",
        "cat <<EOF\n$(curl x)\nEOF",
        "find . -exec curl {} +",
        "nohup nice -n 5 timeout 3 curl x",
        "su -c 'curl x'",
        "env -S 'curl x'",
        "case x in x) curl x;; esac",
        "f() { curl x; }",
        "function f { curl x; }",
        "while curl x; do :; done",
        "time -p curl x",
        ">f curl x",
        "2>/dev/null curl x",
        "a\ncurl x",
        "ssh host 'curl x'",
        "git -c alias.x='!curl y' x",
        "alias x='curl y'",
        "exec curl x",
        "command curl x",
        "cu\\\nrl x",
        "echo $((1 + $(curl x)))",
        "coproc curl x",
        "busybox curl x",
        "parallel curl ::: x",
        "echo ${x:-$(curl x)}",
        "\"$(printf '%s' \"$(curl x)\")\"",
    ];
    for given in hidden {
        let judgement = judged(text(given), SessionPolicy::default(), &rules(), &[], false);
        assert_eq!(judgement.verdict, Verdict::Deny, "{given}");
        assert_eq!(judgement.reason(), "no downloads", "{given}");
    }
    for given in [
        "echo curl x",
        "git commit -m 'curl x'",
        "ls # curl x",
        "cat <<EOF\ncurl x\nEOF",
        "echo '$(curl x)'",
        "grep -r 'curl x' .",
        "mycurl x",
        "env MSG='curl x' make",
    ] {
        assert_eq!(
            judged(text(given), SessionPolicy::default(), &rules(), &[], false).verdict,
            Verdict::Allow,
            "{given}"
        );
    }
}

#[test]
fn forced_removal_asks_in_every_spelling() {
    let spelled = [
        "rm -f x",
        "rm -rf x",
        "rm -r -f x",
        "rm x --force",
        "\\rm -f x",
        "r''m -f x",
        "sudo rm -f x",
        "env -i rm -f x",
        "sh -c 'rm -f x'",
        "trap 'rm -f x' EXIT",
        "x=$(rm -f x)",
        "find . -exec rm -f {} ;",
        "xargs rm -f",
        "bash -c \"sh -c 'rm -f x'\"",
        "a && rm -f x",
        "R=rm; $R -f x",
        "rm $'-f' x",
        "F=-f; rm $F x",
        "{rm,-f,x}",
        "/bin/r? -f x",
        "rm -{r,f} x",
        "time rm -f x",
        "echo rm -f x | sh",
        "[ -e x ] && rm -f x",
    ];
    for given in spelled {
        assert!(!needs_no_search(text(given)), "{given}");
        let judgement = judged(text(given), SessionPolicy::default(), &Rules::default(), &[], false);
        assert_eq!(judgement.verdict, Verdict::Ask, "{given}");
        assert!(judgement.danger.is_some(), "{given}");
        for (danger, verdict) in [(DangerAction::Deny, Verdict::Deny), (DangerAction::Allow, Verdict::Allow)] {
            let session = SessionPolicy { danger, ..SessionPolicy::default() };
            assert_eq!(judged(text(given), session, &Rules::default(), &[], false).verdict, verdict, "{given}");
        }
        let never = SessionPolicy { approval: ApprovalMode::Never, ..SessionPolicy::default() };
        let judgement = judged(text(given), never, &Rules::default(), &[], false);
        assert_eq!(judgement.verdict, Verdict::Deny, "{given}");
        assert!(judgement.reason().contains("approval is never"), "{}", judgement.reason());
    }
    for given in ["rm x", "rm -- -f", "git rm -f x", "echo rm -f", "git commit -m 'rm -f'"] {
        assert_eq!(
            judged(text(given), SessionPolicy::default(), &Rules::default(), &[], false).verdict,
            Verdict::Allow,
            "{given}"
        );
    }
    let argv = ["rm", "-f", "x"].map(String::from);
    assert_eq!(
        judged(What::Argv(&argv), SessionPolicy::default(), &Rules::default(), &[], false).verdict,
        Verdict::Ask
    );
}

#[test]
fn nesting_up_to_eight_is_searched_and_deeper_asks() {
    let nested = |depth: usize| (0..depth).fold("ls".to_string(), |text, _| format!("$({text})"));
    let wrapped = |depth: usize| format!("{} ls", vec!["env"; depth].join(" "));
    let verdict = |text: &str| {
        let what = What::Shell { text, shell: "sh", login: false };
        let judgement = judged(what, SessionPolicy::default(), &Rules::default(), &[], false);
        // The look without a search never allows what the judge asks about.
        assert!(judgement.verdict == Verdict::Allow || !needs_no_search(what), "{text}");
        judgement.verdict
    };
    assert_eq!(verdict(&nested(8)), Verdict::Allow);
    assert_eq!(verdict(&nested(9)), Verdict::Ask);
    assert_eq!(verdict(&wrapped(8)), Verdict::Allow);
    assert_eq!(verdict(&wrapped(9)), Verdict::Ask);
}

#[test]
fn an_allow_is_void_where_a_name_may_mean_other_code() {
    let allowed = |what, names: &[&str], home| judged(what, UNTRUSTED, &rules(), names, home).verdict;
    assert_eq!(allowed(text("ls"), &["LANG"], true), Verdict::Allow);
    for name in ["PATH", "LD_PRELOAD", "BASH_ENV", "GIT_PAGER", "NODE_OPTIONS"] {
        assert_eq!(allowed(text("ls"), &[name], false), Verdict::Ask, "{name}");
    }
    let login = What::Shell { text: "ls", shell: "/bin/bash", login: true };
    assert_eq!(allowed(login, &[], false), Verdict::Allow);
    assert_eq!(allowed(login, &[], true), Verdict::Ask);
    let zsh = What::Shell { text: "ls", shell: "/usr/bin/zsh", login: false };
    assert_eq!(allowed(zsh, &[], true), Verdict::Ask);
    let fish = What::Shell { text: "ls", shell: "/usr/bin/fish", login: false };
    assert_eq!(allowed(fish, &[], false), Verdict::Ask);
    let own_shell = What::Shell { text: "ls", shell: "/work/bash", login: false };
    assert_eq!(allowed(own_shell, &[], false), Verdict::Ask);
    let argv = ["/work/bash", "-c", "ls"].map(String::from);
    assert_eq!(allowed(What::Argv(&argv), &[], false), Verdict::Ask);

    let named = |text: &str| Rules { files: vec![file("a.toml", text)], bad: Vec::new() };
    let by_program = |program: &str| {
        let rules = named(&format!("[[rule]]\nprefix=['ls']\nverdict='allow'\nprogram=['{program}']"));
        judged(text("ls"), UNTRUSTED, &rules, &[], false).verdict
    };
    assert_eq!(by_program("/usr/bin/ls"), Verdict::Allow);
    assert_eq!(by_program("/opt/ls"), Verdict::Ask);
    let replaceable = named("[[rule]]\nprefix=['replaceable']\nverdict='allow'");
    assert_eq!(judged(text("replaceable"), UNTRUSTED, &replaceable, &[], false).verdict, Verdict::Ask);
    let cd = named("[[rule]]\nprefix=['cd']\nverdict='allow'\n[[rule]]\nprefix=['ls']\nverdict='allow'");
    assert_eq!(judged(text("cd x && ls"), UNTRUSTED, &cd, &[], false).verdict, Verdict::Allow);
}

#[test]
fn an_approved_rule_outranks_an_ask_and_never_a_deny() {
    let approved = "[[rule]]\nprefix=['git','push']\nverdict='allow'\n[[rule]]\nprefix=['curl','x']\nverdict='allow'\n\
        [[rule]]\nprefix=['rm','-f','x']\nverdict='allow'";
    let rules = Rules { files: vec![file("10.toml", RULES), file("approved.toml", approved)], bad: Vec::new() };
    let cases = [
        ("git push", Verdict::Allow),
        ("git status && git push", Verdict::Allow),
        ("git push $x", Verdict::Ask),
        ("sh -c 'git push'", Verdict::Allow),
        ("curl x", Verdict::Deny),
        ("rm -f x", Verdict::Allow),
        ("rm -f x /etc/passwd", Verdict::Ask),
        ("git push && rm -rf y", Verdict::Ask),
    ];
    for (given, expected) in cases {
        assert_eq!(judged(text(given), UNTRUSTED, &rules, &[], false).verdict, expected, "{given}");
    }
}

#[test]
fn a_bad_file_asks_about_all_that_it_may_have_judged() {
    let bad = |text: &str| {
        let error = RuleFile::parse("b.toml", text).expect_err("a bad file");
        Rules { files: Vec::new(), bad: vec![BadFile::new(&error, Some(text))] }
    };
    let some = bad("[[rule]]\nprefix=['make']\nverdict='deny'\n[[rule]]\nprefix=['ls']\nverdict='allow'");
    let verdict = |rules: &Rules, given: &str| judged(text(given), SessionPolicy::default(), rules, &[], false).verdict;
    assert_eq!(verdict(&some, "make"), Verdict::Ask);
    assert_eq!(verdict(&some, "sudo make"), Verdict::Ask);
    assert_eq!(verdict(&some, "cat"), Verdict::Allow);
    let unreadable = bad("[[rule]\nprefix=");
    assert_eq!(verdict(&unreadable, "cat"), Verdict::Ask);
}

#[test]
fn a_bad_rule_is_refused_with_file_index_and_example() {
    let ok = "[[rule]]\nprefix=['ls']\nverdict='allow'\n";
    let cases = [
        (
            "[[rule]]\nprefix=['git','status']\nverdict='allow'\nmatch=['git push']",
            "x.toml: rule 1: example \"git push\": the rule does not match it",
        ),
        (
            "[[rule]]\nprefix=['git','status']\nverdict='allow'\nnot_match=['git status -s']",
            "x.toml: rule 1: example \"git status -s\": the rule matches it",
        ),
        ("[[rule]]\nprefix=[]\nverdict='allow'", "x.toml: rule 1: prefix is empty"),
        ("[[rule]]\nprefix=['a',[]]\nverdict='allow'", "x.toml: rule 1: prefix has an empty word or list"),
        ("[[rule]]\nprefix=['a']\nverdict='deny'", "x.toml: rule 1: reason is empty; ask and deny need one"),
        ("[[rule]]\nprefix=['a']\nverdict='ask'\nreason=' '", "x.toml: rule 1: reason is empty; ask and deny need one"),
        ("[[rule]]\nprefix=['a']\nverdict='allow'\nreasn='x'", "x.toml: rule 1: unknown field `reasn`"),
        ("[[rule]]\nprefix=['a']\nverdict='maybe'", "x.toml: rule 1: unknown variant `maybe`"),
        (
            "[[rule]]\nprefix=['a']\nverdict='deny'\nreason='x'\nsandbox='full'",
            "x.toml: rule 1: sandbox is for allow only",
        ),
        (
            "[[rule]]\nprefix=['a']\nverdict='allow'\nprogram=['a']",
            "x.toml: rule 1: program \"a\" is not an absolute path",
        ),
        ("[[rule]]\nprefix=['bash']\nverdict='allow'", "x.toml: rule 1: an allow for `bash` alone"),
        ("[[rule]]\nprefix=[['ls','python3']]\nverdict='allow'", "x.toml: rule 1: an allow for `python3` alone"),
        ("[[rule]]\nprefix=['sudo','env','rm']\nverdict='allow'", "x.toml: rule 1: an allow for `sudo env rm` alone"),
        ("[rules]\na=1", "x.toml: unknown key `rules`"),
        ("[[rule]]\nverdict='allow'", "x.toml: rule 1: missing field `prefix`"),
    ];
    for (text, expected) in cases {
        let error = RuleFile::parse("x.toml", &format!("{ok}{text}")).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(RuleFile::parse("x.toml", "[[rule]").expect_err("no TOML").to_string().starts_with("x.toml: "));
}

#[test]
fn matches_and_granted_profiles_are_reported() {
    let judgement = judged(text("ls && git status"), UNTRUSTED, &rules(), &[], false);
    assert_eq!(judgement.commands, [vec!["ls"], vec!["git", "status"]]);
    assert_eq!(judgement.granted, [vec!["read-only".to_string()], vec![]]);
    let found: Vec<_> = judgement.matches.iter().map(|m| (m.file.as_str(), m.index, m.verdict)).collect();
    assert_eq!(found, [("10.toml", 1, Verdict::Allow), ("10.toml", 0, Verdict::Allow)]);
    let judgement = judged(text("ls && make"), UNTRUSTED, &rules(), &[], false);
    assert_eq!((judgement.granted.len(), judgement.reason()), (0, "no rule allows `make`"));
}

#[test]
fn a_rule_as_text_is_the_same_rule() {
    let rule =
        crate::proposed_rules(&[vec!["git".into(), "a \"b\"\n\\".into()]], Some("full")).expect("a rule").remove(0);
    assert_eq!(file("a.toml", &rule.to_toml()).rules, [rule]);
    assert_eq!(crate::proposed_rules(&[vec!["git".into()]], None), None);
    assert_eq!(crate::proposed_rules(&[], None), None);
}
