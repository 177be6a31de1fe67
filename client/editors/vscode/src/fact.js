// Facts of events about a process. The daemon stores an event before it shows the state that caused it, so an answer that was
// read right after the event can be older than it. Pure.
"use strict";

/** The order of states: a process never goes back. @type {Record<string, number>} */
const RANKS = { pending: 0, starting: 0, running: 1, exited: 2, lost: 2 };

/** Events of before a subscription that are read with it: the state that they caused may not be shown yet. */
const REPLAYED_EVENTS = 200;

/** The time for which a question of an event counts against an answer without one. */
const QUESTION_LAG_MS = 300;

/**
 * @typedef {object} Fact
 * @property {string} [status]
 * @property {boolean} [closed]
 * @property {any} [exit] Fields of the exit.
 * @property {any} [question]
 * @property {number} [askedAt] The time of the question by our clock.
 */

/**
 * Returns the facts that are known after an event. The old ones are not changed.
 * @param {Fact | undefined} fact
 * @param {any} event
 * @param {number} now
 * @returns {Fact | undefined}
 */
function factAfter(fact, event, now) {
  switch (event.type) {
    case "started":
      return fact ?? { status: "running" };
    case "needs_input": {
      const question = { since: event.at, prompt: event.prompt ?? "", echo: event.echo };
      return { ...fact, question, askedAt: now };
    }
    case "exited": {
      const exit = {
        exit_code: event.exit_code ?? null,
        signal: event.signal ?? null,
        reason: event.reason ?? null,
        exited_at: event.at,
        uptime_ms: event.duration_ms,
        needs_input: null,
      };
      return { ...fact, status: event.status ?? "exited", exit, question: undefined };
    }
    case "closed":
      return { ...fact, closed: true };
    default:
      // Other events change nothing that an answer shows late.
      return fact;
  }
}

/**
 * Returns a process that was read, brought up to date with the events.
 * @param {any} process
 * @param {Fact | undefined} fact
 * @param {number} now
 */
function withFact(process, fact, now) {
  if (!fact) return process;
  const result = { ...process };
  if (fact.closed) result.closed = true;
  if (fact.status && RANKS[fact.status] > RANKS[process.status]) {
    result.status = fact.status;
    Object.assign(result, fact.exit);
  }
  const isFresh = fact.askedAt !== undefined && now - fact.askedAt < QUESTION_LAG_MS;
  if (fact.question && isFresh && !result.needs_input && RANKS[result.status] < RANKS.exited) {
    result.needs_input = fact.question;
  }
  return result;
}

module.exports = { REPLAYED_EVENTS, QUESTION_LAG_MS, factAfter, withFact };
