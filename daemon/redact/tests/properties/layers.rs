//! The layers over whole texts: every rule finds its secret, the text around it stays, a second run changes nothing.

use crate::samples::{ALPHANUMERIC, known, noise, pem, redactor, token};
use proptest::prelude::*;
use toold_redact::{KnownValues, RuleCount};

fn redact(text: &str) -> String {
    redactor().redact(text, &KnownValues::new()).text
}

#[test]
fn a_secret_is_replaced_by_its_rule_and_counted() {
    let (pat, slack) = (token("ghp_", 36), token("xoxb-", 40));
    let known = known(&[("env:MY_VALUE", "an opaque value")]);
    let text = format!("a {pat} b {slack} c {pat} d an opaque value");
    let redacted = redactor().redact(&text, &known);
    let expected = "a [redacted:github-pat] b [redacted:slack-token] c [redacted:github-pat] d [redacted:env:MY_VALUE]";
    assert_eq!(redacted.text, expected);
    let counts = [("env:MY_VALUE", 1), ("github-pat", 2), ("slack-token", 1)];
    assert_eq!(redacted.counts, counts.map(|(rule, count)| RuleCount { rule: rule.into(), count }));
}

#[test]
fn several_texts_have_one_count() {
    let (a, b) = (token("npm_", 36), token("npm_", 40));
    let all = redactor().redact_all(&[&a, "nothing", &b], &KnownValues::new());
    assert_eq!(all.texts, ["[redacted:npm-token]", "nothing", "[redacted:npm-token]"]);
    assert_eq!(all.counts, [RuleCount { rule: "npm-token".into(), count: 2 }]);
}

#[test]
fn secrets_of_many_vendors_are_found() {
    let hex = "0123456789abcdef";
    let samples = [
        ("github-fine-grained-pat", token("github_pat_", 82)),
        ("gitlab-token", token("glpat-", 20)),
        ("aws-access-key-id", format!("AKIA{}", noise("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, 1))),
        ("gcp-api-key", token("AIza", 35)),
        ("stripe-key", token("sk_live_", 24)),
        ("anthropic-key", token("sk-ant-api03-", 93)),
        ("openai-key", token("sk-proj-", 48)),
        ("openai-key", format!("sk-{}T3BlbkFJ{}", noise(ALPHANUMERIC, 20, 1), noise(ALPHANUMERIC, 20, 2))),
        ("openrouter-key", format!("sk-or-v1-{}", noise(hex, 64, 1))),
        ("huggingface-token", token("hf_", 34)),
        ("pypi-token", token("pypi-AgEIcHlwaS5vcmc", 100)),
        ("twilio-key", format!("SK{}", noise(hex, 32, 3))),
        ("sendgrid-key", format!("SG.{}.{}", noise(ALPHANUMERIC, 22, 1), noise(ALPHANUMERIC, 43, 2))),
        ("telegram-bot-token", format!("123456789:AA{}", noise(ALPHANUMERIC, 33, 2))),
        ("mailchimp-key", format!("{}-us12", noise(hex, 32, 5))),
        ("tavily-key", token("tvly-dev-", 32)),
        (
            "jwt",
            format!(
                "eyJ{}.eyJ{}.{}",
                noise(ALPHANUMERIC, 33, 1),
                noise(ALPHANUMERIC, 80, 2),
                noise(ALPHANUMERIC, 43, 3)
            ),
        ),
        ("private-key", pem(3)),
    ];
    for (rule, secret) in samples {
        assert_eq!(redact(&format!("x = \"{secret}\";")), format!("x = \"[redacted:{rule}]\";"));
    }
}

#[test]
fn only_the_secret_of_a_header_or_an_address_is_replaced() {
    let secret = noise(ALPHANUMERIC, 24, 4);
    let cases = [
        ("postgres://user:{}@db.example.com/x", "url-password"),
        ("https://:{}@host", "url-password"),
        ("> Authorization: Bearer {}", "authorization"),
        ("\"Authorization\": \"Basic {}\",", "authorization"),
        ("curl -H 'Proxy-Authorization: token {}'", "authorization"),
        ("the bearer {} of", "bearer-token"),
        ("x-api-key: {}", "key-header"),
        ("//registry.example.com/:_authToken={}", "npmrc-auth"),
        ("machine example.com login me password {}", "netrc-password"),
    ];
    for (text, rule) in cases {
        let expected = text.replace("{}", &format!("[redacted:{rule}]"));
        assert_eq!(redact(&text.replace("{}", &secret)), expected);
    }
    let aws = noise(ALPHANUMERIC, 40, 9);
    let expected = "aws_secret_access_key = [redacted:aws-secret-access-key]\n";
    assert_eq!(redact(&format!("aws_secret_access_key = {aws}\n")), expected);
}

#[test]
fn references_and_samples_stay() {
    let text = "https://user:$TOKEN@host https://user:${TOKEN}@host https://user:<token>@host https://u:password@host\n\
        Authorization: Bearer ${{ secrets.X }}\nAuthorization: Bearer $TOKEN\n'Authorization': `Bearer ${token}`\n\
        authorization = request.headers.authorization\nAuthorization: Bearer YOUR_TOKEN_HERE\n\
        ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx AKIAIOSFODNN7EXAMPLE MAX_TOKENS=100 os.getenv(\"API_KEY\")\n\
        \"x-api-key\": process.env.ANTHROPIC_API_KEY_2 disk-usage task-management-of-a-long-name risk-assessment\n";
    assert_eq!(redact(text), text);
}

#[test]
fn an_environment_dump_keeps_its_names() {
    let text = "HOME=/root\nDB_PASSWORD=hunter2\nTERM=xterm\n";
    assert_eq!(redact(text), "HOME=/root\nDB_PASSWORD=[redacted:env-dump]\nTERM=xterm\n");
    assert_eq!(redact("DB_PASSWORD=hunter2\n"), "DB_PASSWORD=hunter2\n");
}

#[test]
fn a_known_value_hides_replacements_of_a_caller_that_knows_more_only_where_it_is() {
    let text = "TOKEN=[redacted:env:TOKEN]\nA=1\nB=2\n[redacted:github-pat] [redacted:env:an_opaque_value]";
    assert_eq!(redact(text), text);
    let known = known(&[("env:X", "an_opaque_value")]);
    assert!(!redactor().redact(text, &known).text.contains("an_opaque_value"));
}

#[test]
fn a_value_that_is_part_of_its_own_replacement_is_replaced_once() {
    let known = known(&[("env:redacted", "redacted"), ("env:github-pat", "github-pat")]);
    let once = redactor().redact("redacted github-pat", &known).text;
    assert_eq!(once, "[redacted:env:redacted] [redacted:env:github-pat]");
    assert_eq!(redactor().redact(&once, &known).text, once);
}

/// Pieces of text that are secrets, parts of them, replacements and structure, in any order.
fn piece() -> impl Strategy<Value = String> {
    let known = ["known-value-1", "a1b2c3d4e5", "redacted:env", "]xxxxxxx"].map(String::from);
    let secrets = [
        token("ghp_", 36),
        token("sk-", 40),
        token("AKIA", 4),
        pem(2),
        format!("AKIA{}", "Q2W3E4R5T6Y7U7I2"),
        format!("SK{}", noise("0123456789abcdef", 32, 3)),
        token("xoxb-", 12),
        token("hf_", 30),
    ];
    let structure = [
        "\n",
        " ",
        "=",
        "TOKEN=",
        "\nA_KEY=",
        "\nB=1",
        "https://u:",
        "@h",
        "Authorization: Bearer ",
        "[redacted:",
        "[redacted:github-pat]",
        "[redacted:env:X]",
        "]",
        "-----BEGIN ",
        "PRIVATE KEY-----",
        "eyJ",
        ".",
        "-",
        "é",
        "\u{fffd}",
        "x",
    ];
    let all: Vec<String> = known.into_iter().chain(secrets).chain(structure.map(String::from)).collect();
    prop_oneof![3 => proptest::sample::select(all), 1 => "[ -~]{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn redacted_text_stays_as_it_is(pieces in proptest::collection::vec(piece(), 0..24)) {
        let known = known(&[("env:A", "known-value-1"), ("b", "a1b2c3d4e5"), ("env:C", "redacted:env"), ("d", "]xxxxxxx")]);
        let redactor = redactor();
        let once = redactor.redact(&pieces.concat(), &known);
        let twice = redactor.redact(&once.text, &known);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert_eq!(twice.counts, []);
        prop_assert!(!once.text.contains("known-value-1") && !once.text.contains("a1b2c3d4e5"));
    }

    #[test]
    fn text_of_no_secret_stays(text in "[a-z ,.;(){}\n\"]{0,400}") {
        prop_assert_eq!(redact(&text), text);
    }
}
