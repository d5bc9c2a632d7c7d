// answers.js - asks questions, and shows their answers, the latest first.
//
// A question that moves (goto, step) moves the page; others add an answer.

import { byId, element, fill } from "./dom.js";
import { ask, recorded } from "./ask.js";
import { place, go, samePosition, eventPosition, positionText } from "./place.js";
import { commandOf, positionLink, table } from "./rows.js";
import { graph } from "./graph.js";

const MOST = 30; // answers that are kept
const ROWS = 500;
const hearers = [];
const replies = [];
let marked = () => {};

// Hears of the positions of the latest answer, for the time line.
export function onAnswer(hearer) {
  hearers.push(hearer);
}

// Hears of new bookmarks.
export function onMark(listener) {
  marked = listener;
}

function message(text) {
  return text.replace(/^tbdq: /gm, "").trim();
}

// What a program died of, in a line.
function ending({signal, reason, addr, thread, function: name, module}) {
  return element("p", {class: "wrong"}, [signal || "killed", reason, addr && `at ${addr}`, thread && `thread ${thread}`, name && `in ${module}!${name}`].filter(Boolean).join("  "));
}

// The graph of `why` comes before its rows, the end of a program before its path.
function content({line, objects, text, messages, cut, status}) {
  const parts = [], end = objects.find((object) => object.type === "end");
  const rows = objects.filter((object) => object.found !== false && object !== end);
  if (end)
    parts.push(ending(end));
  if (commandOf(line) === "why" && rows.length > 0 && rows[0].depth !== undefined)
    parts.push(element("div", {class: "scroll"}, graph(rows)));
  if (rows.length > 0)
    parts.push(table(line, rows));
  else if (!messages && !text)
    parts.push(element("p", {class: "none"}, status === 1 ? "none" : "done"));
  if (text)
    parts.push(element("pre", {}, text));
  if (cut)
    parts.push(element("p", {class: "note"}, `These are the first ${rows.length} rows; there are more.`));
  if (messages)
    parts.push(element("pre", {class: status > 1 ? "wrong" : "note"}, message(messages)));
  return parts;
}

function card(reply) {
  const {answer, at, thread} = reply;
  const again = element("button", {class: "line", title: "Ask again here", onclick: () => question(answer.line)}, answer.line);
  const close = element("button", {class: "close", "aria-label": "Remove", title: "Remove", onclick: () => remove(reply)}, "×");
  return element("article", {}, element("h3", {}, again, element("span", {class: "asked"}, "at ", positionLink(positionText(at), thread)), close), content(answer));
}

function show() {
  fill(byId("replies"), replies.length === 0 ? element("p", {class: "none"}, "Answers appear here. Click a variable, a line's number, or ask.") : replies.map((reply) => reply.card));
}

function remove(reply) {
  replies.splice(replies.indexOf(reply), 1);
  show();
}

function add(answer, at, thread) {
  const reply = {answer, at, thread};
  reply.card = card(reply);
  replies.unshift(reply);
  replies.length = Math.min(replies.length, MOST);
  show();
  byId("replies").scrollTop = 0;
  for (const hearer of hearers)
    hearer(answer.objects.map((object) => eventPosition(object)).filter(Boolean));
}

function failed(line, at, error) {
  const messages = error.name === "AbortError" ? "cancelled" : error.message;
  add({line, status: 4, objects: [], messages, cut: false}, at);
}

// Asks one line at the current place, or at another one.  Returns what was found.
export async function question(line, {span, where = place, text = false} = {}) {
  const from = {at: where.at, thread: where.thread || undefined, frame: where.frame || undefined};
  let answer;
  try {
    answer = await ask({lines: [line], ...from, span, text, rows: ROWS});
  } catch (error) {
    failed(line, from.at, error);
    return null;
  }
  const [first] = answer.answers;
  if (!first) {
    failed(line, from.at, new Error("cancelled"));
    return null;
  }
  const moves = !samePosition(answer.at, from.at), selects = where === place && (answer.frame !== place.frame || answer.thread !== place.thread);
  if (moves || (selects && first.status === 0))
    go({at: answer.at, thread: answer.thread, frame: answer.frame});
  if (!moves || first.objects.length > 1 || first.status !== 0)
    add(first, from.at, from.thread);
  if (commandOf(line) === "mark")
    marked();
  return first;
}

export function startAnswers() {
  show();
  for (const line of recorded ? recorded.asked : [])
    add(recorded.lines[line], recorded.begin.at);
}
