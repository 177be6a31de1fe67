// Uses the generated types as a client would. `tsc` compiles it together with them.
import { Event, EventsNext, Exec, ExecResult, Process } from "./api";

/// `type` tells the events apart, and each has its own fields.
export function exitCode(event: Event): number | null | undefined {
  if (event.type === "exited") {
    // @ts-expect-error: a code is a number
    const text: string = event.exit_code;
    return event.exit_code;
  }
  return undefined;
}

/// Every result with the fields of a process is one.
export function status(result: ExecResult): string {
  const process: Process = result;
  return `${process.id} ${process.status} ${result.output}`;
}

export type Calls = { exec: Exec; next: EventsNext };
