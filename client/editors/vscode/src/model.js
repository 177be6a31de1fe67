// The processes as the editor knows them: read once, then again after events. Nothing is asked for while nothing happens.
"use strict";

const { REPLAYED_EVENTS, QUESTION_LAG_MS, factAfter, withFact } = require("./fact");
const { isAsking, isLive } = require("./text");

/** The time between two reads while events keep coming: a storm of short jobs must not make the editor slow. */
const PAUSE_MS = 50;
/** The most rows of the list. */
const MAX_ROWS = 200;
/** The most processes whose events are remembered. A fact is of use for the moment until the daemon shows it. */
const MAX_FACTS = 1000;
/** The age at which processes that have ended leave the list. */
const ENDED_WITHIN_MS = 3600 * 1000;

const FIELDS =
  "id name command argv cwd status stopped closed exit_code signal reason started_at exited_at uptime_ms pty stdin " +
  "needs_input session_key task_id labels cursor preview ports";

class Model {
  /** @param {import("./rpc").Rpc} rpc */
  constructor(rpc) {
    this.rpc = rpc;
    /** @type {any[]} The answer of the daemon, newest first. */
    this.read = [];
    /** @type {Map<string, import("./fact").Fact>} */
    this.facts = new Map();
    /** @type {Map<string, any>} Subscriptions to the output of processes that ask. */
    this.asking = new Map();
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** @type {Set<(event: any) => void>} */
    this.eventListeners = new Set();
    this.isReading = false;
    this.isStale = false;
    /** @type {NodeJS.Timeout | null} */
    this.lookTimer = null;
    /** @type {NodeJS.Timeout | null} */
    this.pauseTimer = null;
    rpc.stateListeners.add(() => this.publish());
  }

  /** Begins to follow the daemon. */
  start() {
    const onReady = () => this.refresh();
    this.rpc.subscribe({}, (event, isPast) => this.onEvent(event, isPast), { onReady, replay: REPLAYED_EVENTS });
  }

  stop() {
    if (this.lookTimer) clearTimeout(this.lookTimer);
    if (this.pauseTimer) clearTimeout(this.pauseTimer);
    this.listeners.clear();
    this.eventListeners.clear();
  }

  /** Returns the processes, newest first, as they are after all events that have come. */
  processes() {
    const now = Date.now();
    return this.read.map((process) => withFact(process, this.facts.get(process.id), now));
  }

  /** @param {string} id */
  find(id) {
    return this.processes().find((process) => process.id === id);
  }

  publish() {
    for (const listener of this.listeners) listener();
  }

  /** Reads the list again. Calls while it is being read are one more read after it. */
  async refresh() {
    if (this.isReading) {
      this.isStale = true;
      return;
    }
    if (this.rpc.state !== "up") return;
    this.isReading = true;
    this.isStale = false;
    const params = { ended_within_ms: ENDED_WITHIN_MS, limit: MAX_ROWS, usage: true, fields: FIELDS.split(" ") };
    try {
      this.read = (await this.rpc.call("list", params)).processes;
      this.watchQuestions();
      this.publish();
    } catch (failure) {
      const error = /** @type {import("./rpc").RpcError} */ (failure);
      // If the daemon went, the subscription reads the list again when it is back.
      if (error.kind !== "unreachable") this.rpc.report("failure", `list: ${error.message}`);
    }
    if (!this.isStale) {
      this.isReading = false;
      return;
    }
    this.pauseTimer = setTimeout(() => {
      this.isReading = false;
      this.refresh();
    }, PAUSE_MS);
  }

  /** Reads the list once more, when the daemon must show what an event or an answer has changed. */
  lookAgain() {
    if (this.lookTimer) return;
    this.lookTimer = setTimeout(() => {
      this.lookTimer = null;
      this.refresh();
    }, QUESTION_LAG_MS);
  }

  /** Forgets a question that was answered here. @param {string} id */
  forgetQuestion(id) {
    const fact = this.facts.get(id);
    if (fact) this.facts.set(id, { ...fact, question: undefined });
    this.refresh();
    this.lookAgain();
  }

  /**
   * No event reports that a question was answered. The output that follows is the sign of it, so the output of processes that
   * ask is subscribed to, and of no others.
   */
  watchQuestions() {
    const wanted = new Set(this.processes().filter(isAsking).map((process) => process.id));
    for (const [id, subscription] of this.asking) {
      if (wanted.has(id)) continue;
      this.rpc.unsubscribe(subscription);
      this.asking.delete(id);
    }
    for (const id of wanted) {
      if (this.asking.has(id)) continue;
      const onEvent = () => this.forgetQuestion(id);
      this.asking.set(id, this.rpc.subscribe({ id, output: true, types: ["closed"] }, onEvent));
    }
  }

  /**
   * @param {any} event
   * @param {boolean} isPast
   */
  onEvent(event, isPast) {
    if (event.id) {
      if (this.facts.size > MAX_FACTS) this.facts.clear();
      // A question of the past may have been answered: the list shows it, or not.
      const fact = isPast && event.type === "needs_input" ? undefined : factAfter(this.facts.get(event.id), event, Date.now());
      if (fact) this.facts.set(event.id, fact);
    }
    if (isPast) {
      this.publish();
      return;
    }
    for (const listener of this.eventListeners) listener(event);
    this.publish();
    this.refresh();
    // A moment later the daemon shows the question, or the first lines of a process that has started.
    if (event.type === "needs_input" || event.type === "started") this.lookAgain();
  }
}

/**
 * Groups processes by session, in the order of their newest process.
 * @param {any[]} processes
 * @param {"running" | "ended"} part
 * @returns {{ session: string | null, processes: any[] }[]}
 */
function bySession(processes, part) {
  /** @type {Map<string | null, any[]>} */
  const groups = new Map();
  for (const process of processes) {
    if (isLive(process) !== (part === "running")) continue;
    const session = process.session_key ?? null;
    const group = groups.get(session) ?? [];
    group.push(process);
    groups.set(session, group);
  }
  return [...groups].map(([session, group]) => ({ session, processes: group }));
}

module.exports = { Model, bySession };
