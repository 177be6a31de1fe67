//! Refused network calls: the address and the error that the program saw.

use super::world::{User, World};
use serde_json::{Value, json};
use toold_test_support::rig::skip_unless;

/// Tries each call, and prints its operation, address and error.
const TRIES: &str = r#"
import socket, sys
def tried(op, address, family, kind, call):
    s = socket.socket(family, kind)
    try: call(s)
    except OSError as e: print('TRY', op, address, e.errno)
    else: print('TRY', op, address, 0)
for ip, family in (('10.1.2.3', socket.AF_INET), ('127.0.0.1', socket.AF_INET), ('2001:db8::7', socket.AF_INET6), ('::1', socket.AF_INET6)):
    shown = '[%s]:9' % ip if ':' in ip else ip + ':9'
    tried('connect', shown, family, socket.SOCK_STREAM, lambda s: s.connect((ip, 9)))
    tried('sendto', shown, family, socket.SOCK_DGRAM, lambda s: s.sendto(b'x', (ip, 9)))
    tried('bind', shown.replace(':9', ':7999'), family, socket.SOCK_STREAM, lambda s: s.bind((ip, 7999)))
"#;

/// The errors of a network without a way out. Others are those of a server that does not listen.
const OF_SANDBOX: [i64; 2] = [libc::ENETUNREACH as i64, libc::EADDRNOTAVAIL as i64];

#[test]
fn a_refused_call_is_listed_with_its_address_and_the_error_that_the_program_saw() {
    if skip_unless(std::path::Path::new("/usr/bin/python3").exists(), "no python3") {
        return;
    }
    let world = World::new(User::Own, "auto");
    std::fs::write(world.at("work/tries.py"), TRIES).unwrap();
    for network in ["off", "loopback"] {
        let sandbox = json!({ "profile": "workspace-write", "network": network });
        let (process, output) = world.run(&json!(["/usr/bin/python3", "tries.py"]), &sandbox);
        let list = process["sandbox"]["denials"]["list"].as_array().unwrap();
        let tries: Vec<Vec<&str>> =
            output.lines().filter(|line| line.starts_with("TRY")).map(|line| line.split(' ').collect()).collect();
        assert_eq!(tries.len(), 12, "{output}");
        for one in tries {
            let (op, address, errno) = (one[1], one[2], one[3].parse::<i64>().unwrap());
            let listed = list.iter().find(|call| call["op"] == op && call["address"] == address);
            match (OF_SANDBOX.contains(&errno), listed) {
                (true, Some(listed)) => assert_eq!(listed["errno"], errno, "{network}: {listed}"),
                (false, None) => {}
                (_, listed) => {
                    panic!("{network}: {op} {address} {errno}: {listed:?}\n{}", process["sandbox"]["denials"])
                }
            }
        }
        let is_way_out = |call: &Value| call["address"] == "10.1.2.3:9" && call["op"] == "connect";
        assert!(list.iter().any(is_way_out), "{network}: {process}");
    }
}

/// Without a namespace the filter refuses the socket itself.
#[test]
fn with_landlock_alone_the_socket_is_refused_and_listed() {
    if skip_unless(std::path::Path::new("/usr/bin/python3").exists(), "no python3") {
        return;
    }
    let world = World::new(User::Own, "landlock");
    let script = "/usr/bin/python3 -c 'import socket; socket.socket()' 2>&1";
    let (process, output) = world.sh(script, &json!("workspace-write"));
    assert!(output.contains("PermissionError"), "{output}");
    let listed = &process["sandbox"]["denials"]["list"][0];
    assert_eq!(
        (&listed["op"], &listed["address"], &listed["errno"]),
        (&json!("socket"), &json!("inet stream"), &json!(libc::EACCES)),
        "{process}"
    );
}
