//! Output as text and as bytes: split characters, invalid bytes, base64, megabytes in pages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

/// The text of all pages of `max_bytes`, and the number of pages.
fn paged(d: &Daemon, proc: &str, max_bytes: u64) -> (String, usize) {
    paged_stream(d, proc, max_bytes, None)
}

/// Does the same for one stream, or for both merged.
fn paged_stream(d: &Daemon, proc: &str, max_bytes: u64, stream: Option<&str>) -> (String, usize) {
    let (mut conn, mut cursor, mut text, mut pages) = (d.conn(), 0, String::new(), 0);
    loop {
        let page = conn
            .call("poll", json!({ "id": proc, "cursor": cursor, "max_bytes": max_bytes, "stream": stream }))
            .unwrap();
        let next = page["next_cursor"].as_u64().unwrap();
        assert_eq!(page["from"], cursor, "a page starts where the previous one ended");
        if next == page["cursor"].as_u64().unwrap() {
            text += page["output"].as_str().unwrap();
            return (text, pages + 1);
        }
        assert!(next > cursor, "a page of {max_bytes} at {cursor} makes no progress");
        text += page["output"].as_str().unwrap();
        (cursor, pages) = (next, pages + 1);
    }
}

#[test]
fn a_character_across_two_pages_is_returned_whole() {
    let d = Daemon::start();
    let proc = id(&d.run("i=0; while [ $i -lt 40 ]; do printf 'aé€😀'; i=$((i+1)); done"));
    for max_bytes in [1, 2, 3, 4, 5, 7, 11, 64] {
        let (text, pages) = paged(&d, &proc, max_bytes);
        assert_eq!(text, "aé€😀".repeat(40), "pages of {max_bytes}");
        assert!(pages >= 400 / max_bytes.max(4) as usize, "pages of {max_bytes} were only {pages}");
    }
}

#[test]
fn a_character_written_in_two_halves_is_returned_whole() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("printf 'x\\303'; {}; printf '\\251y'; exec sleep 1000", gate.wait()));
    d.eventually("both bytes are there", || d.process(&proc)["bytes"] == 2);
    let first = d.ok("poll", json!({ "id": proc, "cursor": 0 }));
    assert_eq!((&first["output"], &first["next_cursor"]), (&json!("x"), &json!(1)), "half a character is withheld");
    gate.open();
    let second = d.ok("poll", json!({ "id": proc, "cursor": 2, "wait_ms": 50000, "encoding": "base64" }));
    assert_eq!(second["from"], 2, "base64 works at any cursor");
    let second = d.ok("poll", json!({ "id": proc, "cursor": 1, "wait_ms": 50000 }));
    let text = second["output"].as_str().unwrap();
    assert!(text == "éy" || text == "é", "{text}");
}

#[test]
fn a_character_that_ends_unfinished_at_the_close_is_one_replacement() {
    let d = Daemon::start();
    let proc = id(&d.run("printf 'x\\303'"));
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0 }));
    assert_eq!((&page["output"], &page["next_cursor"]), (&json!("x\u{fffd}"), &json!(2)));
}

#[test]
fn each_maximal_subpart_of_an_invalid_character_is_one_replacement() {
    let d = Daemon::start();
    // Invalid bytes, characters that break off before a letter, and one that breaks off at the end of each stream.
    let out = b"a\xffb\xf0\x9f\x92A\xc0\x80\xc3\xa9\xe2\x82\xe2\x82\xac\xe2\x82";
    let err = b"x\xed\xa0\x80y\xf0\x9f\x98";
    let octal = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:03o}")).collect::<String>();
    let proc = id(&d.run(&format!("printf '{}'; printf '{}' >&2", octal(out), octal(err))));
    for (stream, bytes) in [("stdout", out.as_slice()), ("stderr", err)] {
        let expected = String::from_utf8_lossy(bytes);
        for max_bytes in [1, 2, 3, 1000] {
            assert_eq!(
                paged_stream(&d, &proc, max_bytes, Some(stream)).0,
                expected,
                "pages of {max_bytes} of {stream}"
            );
        }
    }
    let merged = String::from_utf8_lossy(&d.bytes(&proc)).into_owned();
    assert_eq!([paged(&d, &proc, 1).0, paged(&d, &proc, 1000).0], [merged.clone(), merged]);
}

#[test]
fn base64_returns_all_256_byte_values_unchanged() {
    let d = Daemon::start();
    let octal: String = (0..=255).map(|b| format!("\\{b:03o}")).collect();
    let proc = id(&d.run(&format!("printf '{octal}'; printf '{octal}' >&2")));
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(d.bytes(&proc).len(), 512);
    for stream in ["stdout", "stderr"] {
        let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "encoding": "base64", "stream": stream }));
        assert_eq!(STANDARD.decode(page["output"].as_str().unwrap()).unwrap(), all, "{stream}");
    }
    let page = d.ok("poll", json!({ "id": proc, "cursor": 100, "max_bytes": 7, "encoding": "base64" }));
    assert_eq!((&page["from"], &page["next_cursor"]), (&json!(100), &json!(107)), "base64 cuts at exactly max_bytes");
}

#[test]
fn eight_mebibytes_are_returned_byte_for_byte() {
    let d = Daemon::start();
    let p = d.run("head -c 8388608 /dev/urandom | tee copy");
    assert_eq!((&p["bytes"], &p["dropped_bytes"]), (&json!(8_388_608), &json!(0)));
    let written = fs::read(d.home().join("copy")).unwrap();
    assert!(d.bytes(&id(&p)) == written, "the pages differ from what was written");
}

#[test]
fn a_page_from_the_middle_of_a_large_output_is_that_page() {
    let d = Daemon::start();
    // 8-byte lines, so that every offset identifies its line.
    let proc = id(&d.run("seq -f '%07.0f' 0 999999"));
    for line in [0u64, 1, 500_000, 999_999] {
        let page = d.ok("poll", json!({ "id": proc, "cursor": line * 8, "max_bytes": 8 }));
        assert_eq!(page["output"], format!("{line:07}\n"));
    }
    let end = d.ok("poll", json!({ "id": proc, "cursor": 8_000_000 }));
    assert_eq!((&end["output"], &end["gap"]), (&json!(""), &Value::Null));
}

/// The broken code left `31mred` and the control character in the text; xterm acts on both.
#[test]
fn c1_controls_in_utf_8_are_escape_sequences() {
    let d = Daemon::start();
    let proc = id(&d.run("printf '\\302\\23331mred\\302\\2330m \\302\\2350;title\\302\\234\\302\\243 5\\n'"));
    for max in [1, 2, 3, 1000] {
        assert_eq!(paged(&d, &proc, max).0, "red £ 5\n", "pages of {max}");
    }
    assert_eq!(d.ok("log", json!({ "id": proc }))["output"], "red £ 5\n");
    let kept = d.ok("poll", json!({ "id": proc, "cursor": 0, "ansi": "keep" }));
    assert!(kept["output"].as_str().unwrap().starts_with("\u{9b}31mred"), "{kept}");
}
