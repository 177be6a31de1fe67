// A program as a user writes it: the compiler must know every name and type in it.
import { AlreadyExited, CalledProcessError, NotFound, RpcError, Toold, WaitTimeout, types } from "toold";

export async function main(): Promise<number | null> {
  const t = new Toold({ autostart: false });
  const p = await t.exec("make -j", { cwd: ".", name: "build", notify: true, watch: ["error", { regex: "^warning" }] });
  const output: string = p.output;
  for await (const line of p.follow()) line.toUpperCase();
  for await (const { cursor, stream, data } of p.stream({ raw: true })) data.subarray(cursor, stream.length);
  try {
    const r = await p.wait({ timeout_ms: 60000, until: { match: "ready" } });
    const code: number | null | undefined = r.exit_code;
    await p.submit("y");
    const receipt: types.Killed = await p.kill({ signal: "SIGINT" });
    await t.run(["pytest"], { check: true });
    const listed: types.ListResult = await t.list({ status: "running" });
    await t.events_ack({ consumer: "me", seq: 1 });
    return code ?? listed.total + receipt.survivors.length + output.length;
  } catch (error) {
    if (error instanceof NotFound || error instanceof AlreadyExited) return error.code;
    if (error instanceof WaitTimeout) return error.process.pid ?? null;
    if (error instanceof CalledProcessError) return error.returncode;
    if (error instanceof RpcError) return Object.keys(error.data).length;
    throw error;
  }
}

export async function events(t: Toold): Promise<void> {
  for await (const e of t.events({ types: ["completion"], consumer: "me" })) {
    if (e.type === "completion") {
      const code: number | null = e.exit_code;
      if (code !== 0) await e.ack();
    }
    if (e.type === "output") e.data.split("\n");
  }
}

export async function mistakes(t: Toold): Promise<void> {
  // @ts-expect-error a parameter that does not exist
  await t.exec("make", { comand: "x" });
  // @ts-expect-error a parameter that is missing
  await t.poll({});
  // @ts-expect-error a value that is not one of the enum
  await t.list({ status: "walking" });
  // @ts-expect-error an event that does not exist
  t.events({ types: ["nothing"] });
}
