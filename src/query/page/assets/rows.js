// rows.js - answers as tables: which columns an answer has, and what stands in a cell.
//
// Columns follow from the command's name; an answer that has no row here shows all its keys.

import { element, grouped, baseName } from "./dom.js";
import { certaintyMark } from "./certainty.js";
import { hashOf, isBefore, positionOf, eventPosition, positionText } from "./place.js";

const EVENT = ["position", "what", "function", "source"];
const COLUMNS = {
  calls: ["position", "values", "result", "duration", "nesting", "caller", "exit"],
  history: ["from", "to", "value", "certainty", "function", "source", "text"],
  stores: ["position", "oldval", "newval", "size", "function", "source", "text"],
  lines: ["position", "function", "source", "text"],
  syscalls: ["position", "call", "function", "source"],
  signals: ["position", "signal", "reason", "effect", "addr", "function", "source"],
  trace: ["position", "function", "source", "code"],
  why: ["position", "what", "value", "certainty", "code", "source", "function", "caller", "text"],
  count: ["count", "by"],
  bt: ["frame", "function", "source", "module", "pc"],
  marks: ["position", "name"],
  threads: ["number", "thread", "name", "start", "end", "blocks", "switches", "function", "source"],
  windows: ["window", "time", "blocks", "level", "stores", "calls", "returns", "syscalls", "signals", "toc_bytes", "trace_bytes", "block_bytes"],
  modules: ["module", "start", "end", "path"],
  locals: ["name", "value", "certainty", "ctype"],
  print: ["value", "certainty", "ctype", "addr"],
  disas: ["position", "pc", "text", "function", "source"],
  list: ["line", "text"],
  path: ["back", "when", "thread", "blocks", "times", "loop", "insn", "function", "source", "text", "values"],
  goto: EVENT, all: EVENT, where: EVENT, first: EVENT, last: EVENT,
};
const POSITIONS = new Set(["position", "exit", "from", "to", "start", "end", "back"]);
const NUMBERS = new Set(["count", "duration", "blocks", "nesting", "stores", "calls", "returns", "syscalls", "signals", "switches", "frame", "size",
  "toc_bytes", "trace_bytes", "block_bytes", "window", "time", "level", "times"]);

export function commandOf(line) {
  const [word] = line.trim().split(/[\s/]/);
  return word || "";
}

export const sourceOf = (object) => object.source || (object.file ? `${baseName(object.file)}:${object.line}` : "");

// What an event did, in a few words.
function whatOf(object) {
  if (object.call)
    return object.call;
  if (object.type === "store")
    return `${object.addr} ${object.oldval ?? object.oldbytes ?? ""} → ${object.newval ?? object.newbytes ?? ""}  ${object.text}`;
  if (object.type === "signal")
    return [object.signal, object.reason, object.effect].filter(Boolean).join("  ");
  if (object.type === "thread_switch")
    return `thread ${object.previous} → ${object.thread}  ${object.reason ?? ""}`;
  if (object.type === "func_exit")
    return `returns ${object.result || object.retval}`;
  return object.what ?? `${object.type && object.type !== "position" ? `${object.type}  ` : ""}${object.signal ? `${object.signal}  ` : ""}${object.text ?? ""}`;
}

function valueOf(object, key) {
  if (key === "source")
    return sourceOf(object);
  if (key === "what")
    return whatOf(object);
  if (key === "position" && object.position === undefined && eventPosition(object))
    return positionText(eventPosition(object));
  if (key === "values" && object.values)
    return object.values.map((one) => (typeof one === "object" ? one.text : one)).join(", ");
  if (key === "function" && object.function)
    return object.function + (object.function_offset && object.pc && !object.outer ? `+0x${object.function_offset.toString(16)}` : "");
  return object[key];
}

// A value of a dump's past.  Where the mouse rests: why it is so.
function pastValues(values) {
  return values.flatMap((value, i) => [i ? ", " : null,
    element("span", {class: `past ${value.after_certainty ?? value.certainty}`, title: value.why}, value.text)]);
}

// A link to a position of this trace.
export function positionLink(text, thread) {
  const at = positionOf(text);
  return at ? element("a", {href: hashOf({at, thread}), class: "at"}, String(text)) : String(text);
}

let openSource = () => {};

// A click on a place in the source shows it.
export function onSource(listener) {
  openSource = listener;
}

export function sourceButton(object, text) {
  const place_ = object.file ? `${object.file}:${object.line}` : text;
  return element("button", {class: "source", title: "Show this source", onclick: () => openSource(place_)}, text);
}

// A cell's content: text, a number, a position to go to, a place in the source.
function cellOf(object, key, isForeign) {
  const value = valueOf(object, key);
  if (value === undefined || value === null)
    return "";
  if (key === "values" && object.values.some((one) => typeof one === "object"))
    return pastValues(object.values);
  if ((key === "source" || key === "by") && /:\d+$/.test(value))
    return sourceButton(object, value);
  if (key === "certainty")
    return certaintyMark(value) ?? String(value);
  if (POSITIONS.has(key) && !isForeign && positionOf(value))
    return positionLink(value, isBefore(positionOf(value)) ? object.thread : undefined);
  if (typeof value === "number")
    return NUMBERS.has(key) ? grouped(value) : String(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function columnsOf(line, objects) {
  const known = COLUMNS[commandOf(line)];
  if (known)
    return known.filter((key) => objects.some((object) => !["", undefined, null].includes(valueOf(object, key))));
  const keys = new Set(objects.flatMap((object) => Object.keys(object)));
  if (keys.has("time") && keys.has("pc"))
    return EVENT;
  return [...keys].slice(0, 14);
}

function rowOf(object, columns) {
  const isForeign = Boolean(object.trace); // a position of another trace
  return element("tr", {class: object.incomplete ? "incomplete" : null}, columns.map((key) =>
    element("td", {class: NUMBERS.has(key) ? "number" : key === "code" || key === "insn" || key === "text" ? "code" : null}, cellOf(object, key, isForeign))));
}

// One object whose values matter one by one, as `info`.
function pairs(object) {
  return element("dl", {class: "pairs"}, Object.entries(object).flatMap(([key, value]) => [
    element("dt", {}, key),
    element("dd", {}, typeof value === "object" && value !== null ? JSON.stringify(value) : String(value))]));
}

export function table(line, objects) {
  const whole = objects.filter((object) => !object.incomplete && object.found !== false);
  if (whole.length === 1 && !COLUMNS[commandOf(line)] && !("pc" in whole[0]))
    return pairs(whole[0]);
  const columns = columnsOf(line, whole);
  return element("div", {class: "scroll"}, element("table", {},
    element("thead", {}, element("tr", {}, columns.map((key) => element("th", {scope: "col"}, key.replace("_", " "))))),
    element("tbody", {}, whole.map((object) => rowOf(object, columns)))));
}
