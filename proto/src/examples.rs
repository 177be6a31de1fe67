//! Processes and scripts for the examples of methods.

/// Writes the example of a process as JSON, with more fields beside its own. Fields with a default are left out.
macro_rules! process_example {
    ($more:literal) => {
        process_example!(
            r#""status":"exited","closed":true,"exit_code":2,"reason":"exited","exited_at":"2026-11-16T03:28:50.523Z""#,
            $more
        )
    };
    ($state:literal, $more:literal) => {
        concat!(
            r#"{"id":"proc_0123456789ab","name":"test","command":"make test","argv":["/bin/bash","-lc","make test"],"#,
            r#""cwd":"/home/me/project","backend":"local","pid":4711,"#,
            $state,
            r#","signal":null,"core_dumped":false,"killed_by":null,"failure":null,"#,
            r#""started_at":"2026-11-16T03:28:50.123Z","uptime_ms":400,"#,
            r#""pty":false,"pty_size":null,"stdin":"null","task_id":null,"session_key":"chat-42","labels":{},"#,
            r#""notify":false,"watch":null,"bytes":25,"lines":1,"cursor":25,"dropped_bytes":0,"unstored_bytes":0,"#,
            r#""limits":{},"sandbox":{"kind":"none","enforced":[]},"detached":null,"request_id":null,"#,
            $more,
            "}"
        )
    };
}
pub(crate) use process_example;

/// The result of a script in examples.
pub const SCRIPT_EXAMPLE: &str = concat!(
    r#"{"id":"proc_0123456789ab","status":"ok","exit_code":0,"signal":null,"output":"0\n","stderr":"","output_truncated":null,"#,
    r#""calls":{"made":1,"refused":0,"failed":0,"unknown":0,"log":[{"call":"5f3a0c12-1","tool":"terminal","#,
    r#""args_preview":"{\"command\":\"make test\"}","status":"ok","ms":1000,"bytes":90}]},"artifacts":[],"redacted":[],"hints":[],"#,
    r#""duration_ms":1100,"log_path":"/home/me/.local/state/toold/procs/proc_0123456789ab/log","process":"#,
    process_example!(r#""restart_of":null"#),
    "}"
);
