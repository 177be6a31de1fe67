/** A call that failed: `kind` and `data` are for programs, `message` is for people. */
export class ToolError extends Error {
  kind: string;
  data: Record<string, unknown>;
  tool?: string;
  call?: string;
}
export class ToolDenied extends ToolError {}
export class ToolTimeout extends ToolError {}
export class ToolLimit extends ToolError {}
export class ToolUnavailable extends ToolError {}
export class ToolInvalid extends ToolError {}
export class ToolConflict extends ToolError {}
export class ToolCancelled extends ToolError {}
/** The call may have happened. Look before you repeat it. */
export class OutcomeUnknown extends ToolError {}

/** Options of one call: `timeout` in seconds. */
export interface CallOptions {
  timeout?: number;
  signal?: AbortSignal;
}
export interface ToolFunction<Args, Result, First = never> {
  (args: Args | First, options?: CallOptions): Promise<Result>;
  /** A call that has not begun, for `gather`. */
  later(args: Args | First, options?: CallOptions): () => Promise<Result>;
  readonly tool: string;
}

export function result(value: unknown): Promise<void>;
export function artifact(file: string): Promise<void>;
export function note(text: string): void;
export function gather<T>(calls: Iterable<(() => Promise<T>) | Promise<T>>, options?: { parallel?: number }): Promise<T[]>;
export function retry<T>(fn: () => Promise<T>, options?: { times?: number; delay?: number; factor?: number }): Promise<T>;
export function shellQuote(text: string): string;
export const args: any;
