// ask.js - asks the server, or, in a page that is a file, what was recorded in it.
//
// Questions are answered one after another.  Each has an id, by which it can be cancelled; while one takes long, the
// listeners of progress hear of it.

const recordedElement = document.getElementById("recorded");
export const recorded = recordedElement ? JSON.parse(recordedElement.textContent) : null;

const tab = Math.random().toString(36).slice(2, 10);
const pending = new Map(); // id -> question
let number = 0;
let polling = null;
let tell = () => {};

export class Refused extends Error {}

export function onProgress(listener) {
  tell = listener;
}

// question: {lines | begin | complete | sums, at, thread, frame, span, ...} (docs/JSON.md).
export async function ask(question, {signal, quiet = false} = {}) {
  if (recorded)
    return answerFromFile(question);
  const id = `${tab}-${number += 1}`;
  const stop = () => cancel(id);
  if (signal && signal.aborted)
    throw new DOMException("cancelled", "AbortError");
  if (signal)
    signal.addEventListener("abort", stop);
  if (!quiet)
    pending.set(id, question);
  poll();
  try {
    return await send(id, question);
  } finally {
    pending.delete(id);
    if (signal)
      signal.removeEventListener("abort", stop);
    if (pending.size === 0)
      tell(null);
  }
}

async function send(id, question) {
  let reply;
  try {
    reply = await fetch("ask", {method: "POST", body: JSON.stringify({id, ...question})});
  } catch {
    throw new Refused("The server does not answer: tbdq view has ended.");
  }
  if (!reply.ok)
    throw new Refused(await reply.text());
  return reply.json();
}

function cancel(id) {
  if (!recorded)
    fetch("cancel", {method: "POST", body: id}).catch(() => {});
}

export function cancelAll() {
  for (const id of pending.keys())
    cancel(id);
}

// Looks every now and then what the server does, as long as a question waits.
function poll() {
  if (polling !== null)
    return;
  polling = setTimeout(async () => {
    polling = null;
    if (pending.size === 0)
      return;
    try {
      const progress = await (await fetch("progress")).json();
      if (pending.size !== 0)
        tell(progress);
    } catch {
      // the question itself says so
    }
    poll();
  }, 250);
}

function answerFromFile(question) {
  const at = recorded.begin.at;
  const base = {at, thread: recorded.begin.thread, frame: recorded.begin.frame, interrupted: false};
  if (question.begin)
    return recorded.begin;
  if (question.sums)
    return recorded.sums;
  if (question.complete !== undefined)
    return {...base, from: 0, words: Object.keys(recorded.lines)};
  return {...base, answers: question.lines.map((line) => recorded.lines[line] || notRecorded(line))};
}

function notRecorded(line) {
  return {line, status: 1, objects: [], cut: false, messages: "This file holds the answers that were asked when it was made; tbdq view answers all."};
}
