// One method for each method of the daemon.
// Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.
import type * as types from "./types";
import type { CallOptions, Process, Subscription, ToolInvoker } from "./index";

export interface Methods {
  /** Start a process. Answers when the program runs; with `yield_ms`, when it has exited or the time is over. */
  exec(command: string | string[], params?: types.ExecParams, options?: CallOptions): Promise<Process & types.ExecResult>;
  /** Start a process. Answers when the program runs; with `yield_ms`, when it has exited or the time is over. */
  exec(params: types.ExecParams, options?: CallOptions): Promise<Process & types.ExecResult>;
  /** Return a process and its output from a cursor on. Consumes nothing. With `wait_ms` it waits for new output, the exit or the end of the output. */
  poll(params: types.PollParams, options?: CallOptions): Promise<Process & types.PollResult>;
  /** Return the output by line. Without `offset` these are the last lines. With `grep` only lines that match. */
  log(params?: types.LogParams, options?: CallOptions): Promise<types.LogResult>;
  /** Wait until processes exit, close their output, print a match or wait for input. After a timeout they keep running. What was printed before the call matches too. */
  wait(params?: types.WaitParams, options?: CallOptions): Promise<types.WaitResult>;
  /** Kill whole process trees. Answers when it is verified that no process of them is left, or with the survivors. */
  kill(params?: types.KillParams, options?: CallOptions): Promise<types.KillResult>;
  /** Send one signal to the process group. Does nothing else: it neither waits nor kills what is left. */
  signal(params: types.SignalParams, options?: CallOptions): Promise<types.SignalResult>;
  /** Start a process again. The same program, arguments, directory, name and limits, after its old tree is proven to be gone; the new run has an id of its own. If the program or the directory is gone, the old process keeps running. Environment values come from `env`, or from the shim while it lives. */
  restart(params: types.RestartParams, options?: CallOptions): Promise<Process & types.RestartResult>;
  /** Stop a process and all of its descendants. Sends SIGSTOP, and answers when all have stopped, or after 3 seconds with `stopped` false. */
  pause(params: types.PauseParams, options?: CallOptions): Promise<Process & types.PauseResult>;
  /** Continue a process and all of its descendants. Sends SIGCONT. A process that is not stopped goes on as before. */
  resume(params: types.ResumeParams, options?: CallOptions): Promise<Process & types.ResumeResult>;
  /** Write bytes to stdin, unchanged, or type keys. Answers when the program has taken them all, or with the number that it took within `timeout_ms`. */
  write(params: types.WriteParams, options?: CallOptions): Promise<types.WriteResult>;
  /** Write bytes and a newline to stdin. Otherwise like `write`. */
  submit(params: types.SubmitParams, options?: CallOptions): Promise<types.WriteResult>;
  /** Close stdin. Closes the pipe, or types end-of-file into the terminal. */
  close(params: types.CloseParams, options?: CallOptions): Promise<types.CloseResult>;
  /** Return the screen of a process's terminal as text. The screen stays after the exit. Only for processes that were started with `pty`. */
  screen(params: types.ScreenParams, options?: CallOptions): Promise<types.ScreenResult>;
  /** Set the size of a process's terminal. Only for processes that were started with `pty`. */
  resize(params: types.ResizeParams, options?: CallOptions): Promise<types.ResizeResult>;
  /** List processes, newest first. The filters select those for which all of them hold. `total` counts all that were selected. */
  list(params?: types.ListParams, options?: CallOptions): Promise<types.ListResult>;
  /** Return a process with its tree. Also its files, the names of its environment variables and the resources that it uses. */
  inspect(params: types.InspectParams, options?: CallOptions): Promise<Process & types.InspectResult>;
  /** Remove the records and logs of finished processes. Processes that still run are skipped. */
  forget(params?: types.ForgetParams, options?: CallOptions): Promise<types.ForgetResult>;
  /** Return the changes of a staged process, with a diff. While it runs they are those so far, without a digest. */
  stage_diff(params: types.StageDiffParams, options?: CallOptions): Promise<types.StageDiffResult>;
  /** Make the changes of a staged process below its overlay. All of them or none, also over a crash. Fails with `conflict` if the digest is not that of the changes, and names the files that were changed below meanwhile. */
  stage_commit(params: types.StageCommitParams, options?: CallOptions): Promise<types.StageCommitResult>;
  /** Remove the changes of a staged process. Nothing below its overlay changes. */
  stage_discard(params: types.StageDiscardParams, options?: CallOptions): Promise<types.StageDiscardResult>;
  /** List the processes that a session or task still runs. Give `session_key` or `task_id`. */
  session_active(params?: types.SessionActiveParams, options?: CallOptions): Promise<types.SessionActiveResult>;
  /** Kill the processes that a session still runs. Returns what was killed. Their completions are marked `cancelled` and not pushed. */
  session_end(params: types.SessionEndParams, options?: CallOptions): Promise<types.SessionEndResult>;
  /** Set the defaults of a session, and its ceiling. Durable. Replaces what an earlier call set and keeps the grants; nothing but `session_key` removes the settings. `sandbox` and `roots` must not be wider than `policy.max`. */
  session_configure(params: types.SessionConfigureParams, options?: CallOptions): Promise<types.SessionGetResult>;
  /** Return the settings of a session. With its processes that run, its grants and its questions that wait. */
  session_get(params: types.SessionGetParams, options?: CallOptions): Promise<types.SessionGetResult>;
  /** Judge a call as `exec` would, and run nothing. Takes the parameters of `exec`. No event is published. */
  policy_check(params?: types.PolicyCheckParams, options?: CallOptions): Promise<types.PolicyCheckResult>;
  /** Read the rule files again. If one is refused, the old rules stay; `data` has its `file`, `index` and `example`. */
  policy_reload(params?: Record<string, never>, options?: CallOptions): Promise<types.PolicyReloadResult>;
  /** Suggest a profile and rules for what a process was refused. From the calls that its sandbox refused. Writes nothing. */
  policy_suggest(params: types.PolicySuggestParams, options?: CallOptions): Promise<types.PolicySuggestResult>;
  /** List the queues. With their slots, and how many of their processes run and wait. */
  queues_list(params?: Record<string, never>, options?: CallOptions): Promise<types.QueuesListResult>;
  /** Set the slots of a queue, pause or resume it. Durable, and stronger than the config. */
  queues_set(params: types.QueuesSetParams, options?: CallOptions): Promise<types.Queue>;
  /** List the approvals, oldest first. Questions that wait for a person, unless `state` asks for others. */
  approvals_list(params?: types.ApprovalsListParams, options?: CallOptions): Promise<types.ApprovalsListResult>;
  /** Return one approval. Also one that was decided. */
  approvals_get(params: types.ApprovalsGetParams, options?: CallOptions): Promise<types.Approval>;
  /** Decide an approval. The first decision wins; another gets `already_decided`. `digest` is that of the action that the person saw. Scope `session` makes a grant for the same argv, directory and profile, `always` a rule. `abort` denies, and withdraws everything else pending of the task. Not from inside a job. */
  approvals_decide(params: types.ApprovalsDecideParams, options?: CallOptions): Promise<types.ApprovalsDecideResult>;
  /** List the grants, oldest first. What persons allowed for the rest of a session. */
  grants_list(params?: types.GrantsListParams, options?: CallOptions): Promise<types.GrantsListResult>;
  /** Revoke a grant, or all of a session. Later uses are stopped. Lists what still runs under them, and kills it with `kill`. Not from inside a job. */
  grants_revoke(params?: types.GrantsRevokeParams, options?: CallOptions): Promise<types.GrantsRevokeResult>;
  /** Apply a patch to files: all of it, or nothing. The patch has the form of `apply_patch`: `*** Begin Patch`, then `*** Add File: p`, `*** Delete File: p` or `*** Update File: p` with chunks, then `*** End Patch`. It is verified first; an error names the line. Old bytes are kept for `patch.revert`. */
  patch_apply(params: types.PatchApplyParams, options?: CallOptions): Promise<types.PatchResult>;
  /** Undo a patch. From the bytes that were kept when it was applied, for `patch.keep_ms`. A file that has changed since is a `conflict`, and nothing is done. */
  patch_revert(params: types.PatchRevertParams, options?: CallOptions): Promise<types.PatchRevertResult>;
  /** Push events as notifications `events.event`. Also output, with `output`. Returns the number of the subscription. `x-notifications` of this document describes the messages. */
  events_subscribe(params?: types.EventsSubscribeParams, options?: CallOptions): Promise<Subscription>;
  /** End a subscription. Returns false if the connection has no such subscription. */
  events_unsubscribe(params: types.EventsUnsubscribeParams, options?: CallOptions): Promise<boolean>;
  /** Return the next events for a named consumer. An event comes again until it is acknowledged. */
  events_next(params: types.EventsNextParams, options?: CallOptions): Promise<types.EventsNextResult>;
  /** Acknowledge all events up to a number. Moves the durable position of the consumer. It never moves back. */
  events_ack(params: types.EventsAckParams, options?: CallOptions): Promise<types.EventsAckResult>;
  /** Read lines of a text file. Regular files only. A page that is longer than `fs.read_max_chars` is the error `limit`, which names a shorter one. */
  fs_read(params: types.FsReadParams, options?: CallOptions): Promise<types.FsReadResult>;
  /** Write a whole file. A temporary file takes the place of the old one, so a reader sees the old or the new content. Mode, owner and extended attributes are kept where the daemon may. */
  fs_write(params: types.FsWriteParams, options?: CallOptions): Promise<types.FsWriteResult>;
  /** Replace a text in a file. Tries strategies from the strictest on, and returns the name of the one that found it. Line ends, byte order mark and mode are kept. */
  fs_edit(params: types.FsEditParams, options?: CallOptions): Promise<types.FsEditResult>;
  /** List a directory. Entries come in the order of their names. Links are not followed. */
  fs_list(params: types.FsListParams, options?: CallOptions): Promise<types.FsListResult>;
  /** Search files for a regular expression. Leaves out what ignore files name, hidden and binary files. After `timeout_ms` it returns what was found, with `complete` false. */
  fs_search(params: types.FsSearchParams, options?: CallOptions): Promise<types.FsSearchResult>;
  /** List tools. Only what the session may call. `full` has schemas and the signatures for scripts; another `format` is ready for the API of a model. */
  tools_list(params?: types.ToolsListParams, options?: CallOptions): Promise<types.ToolsListResult>;
  /** Call a tool. Wrong arguments are `invalid_params`, with the place as a JSON pointer in `data.pointer`. `$/cancelRequest` ends the call. After `outcome_unknown` it may have happened; nothing repeats it. */
  tools_call(params: types.ToolsCallParams, options?: CallOptions): Promise<types.ToolsCallResult>;
  /** Offer tools on this connection. The daemon sends `tools.invoke` for each call (see `x-notifications`), and `$/cancelRequest`. Needs a connection that can be pushed to. A provider that is lost has `reconnect_ms` to register again; its tools stay listed as `unavailable`. A name that another connection serves is `already_exists`, with that client in `data.client`; `takeover` replaces it. Not from inside a job. */
  tools_register(params: types.ToolsRegisterParams & { invoke: ToolInvoker }, options?: CallOptions): Promise<types.ToolsRegisterResult>;
  /** Withdraw the tools of a provider. Calls in flight end as if its connection were lost. Only the connection that offers them may do it, or any if that has ended. */
  tools_unregister(params: types.ToolsUnregisterParams, options?: CallOptions): Promise<types.ToolsUnregisterResult>;
  /** List the tools of an MCP server again. Starts the server if it does not run. A server that reports a change is asked by itself. */
  tools_refresh(params: types.ToolsRefreshParams, options?: CallOptions): Promise<types.ToolsRefreshResult>;
  /** Run a script that calls tools. It is a process: `poll`, `log`, `wait`, `kill` work on it. Answers when it has ended, or when `yield_ms` is over; it runs on then. */
  script_run(params?: types.ScriptRunParams, options?: CallOptions): Promise<types.ScriptRunResult>;
  /** Return the result of a script. Any number of times, also after its end and after a restart of the daemon. Consumes nothing. */
  script_result(params: types.ScriptResultParams, options?: CallOptions): Promise<types.ScriptRunResult>;
  /** List the calls of a script. The oldest first, from its journal; also after its end and after a restart of the daemon. */
  script_calls(params: types.ScriptCallsParams, options?: CallOptions): Promise<types.ScriptCallsResult>;
  /** Cancel a script, or one of its calls. Ends the authority of the script, then its calls, then its tree, then answers. */
  script_cancel(params: types.ScriptCancelParams, options?: CallOptions): Promise<types.ScriptCancelResult>;
  /** Start a kernel: an interpreter that keeps its state and runs cells. It is a process, and a script: `poll`, `log`, `kill` and `script.calls` work on it. It ends after `idle_ms` without a cell. */
  kernel_open(params?: types.KernelOpenParams, options?: CallOptions): Promise<Process & types.KernelOpenResult>;
  /** Run a cell in a kernel. Answers at its end, or when `yield_ms` is over; it runs on then, and `script.result` has it. `value` is the text of its last expression; its output is the range `from` to `to` of the log. After `timeout_ms` it is interrupted as by `kernel.interrupt`. */
  kernel_run(params: types.KernelRunParams, options?: CallOptions): Promise<types.ScriptRunResult>;
  /** Interrupt the cell that runs. SIGINT to the group of the interpreter, as Ctrl-C in a terminal. A kernel whose cell goes on for `grace_ms` is killed. */
  kernel_interrupt(params?: types.KernelInterruptParams, options?: CallOptions): Promise<types.KernelInterruptResult>;
  /** Give a kernel a new interpreter. Its id and its log stay, its state is gone. A cell that runs is interrupted, cells that wait do not run. */
  kernel_reset(params?: types.KernelResetParams, options?: CallOptions): Promise<types.KernelResetResult>;
  /** End a kernel. Its authority ends, then its calls, then its tree. */
  kernel_close(params?: types.KernelCloseParams, options?: CallOptions): Promise<types.KernelCloseResult>;
  /** Check the sandbox of this machine. Tries forbidden acts in a confined process, under each mechanism, and returns what was seen. `daemon.info` has the last result. */
  sandbox_probe(params?: Record<string, never>, options?: CallOptions): Promise<types.SandboxProbeResult>;
  /** Return the state of the daemon. Its version, counts, limits and paths, and the features of this system. */
  daemon_info(params?: Record<string, never>, options?: CallOptions): Promise<types.DaemonInfoResult>;
  /** Stop the daemon. Processes keep running, unless `kill` is true. */
  daemon_shutdown(params?: types.DaemonShutdownParams, options?: CallOptions): Promise<types.ShutdownResult>;
  /** Return the OpenRPC document of all methods and events. The same document as `proto/openrpc.json` of this version. The example is shortened. */
  rpc_discover(params?: Record<string, never>, options?: CallOptions): Promise<unknown>;
}
