// state.js - the state at the position: stack, variables, registers, memory, instructions, threads.

import { byId, element, fill, grouped } from "./dom.js";
import { ask } from "./ask.js";
import { question } from "./answers.js";
import { certaintyMark } from "./certainty.js";
import { place, go, hashOf, isBefore, eventPosition, positionText } from "./place.js";
import { sourceButton, sourceOf } from "./rows.js";

// ---- stack ----

function frameRow(frame) {
  const selected = frame.frame === place.frame;
  return element("a", {href: hashOf({at: place.at, thread: place.thread, frame: frame.frame}), class: selected ? "frame selected" : "frame", "aria-current": selected ? "true" : null,
    title: `${frame.module || ""} ${frame.pc}`},
  element("span", {class: "digits"}, String(frame.frame)),
  element("span", {class: "function"}, frame.function || frame.pc, frame.inlined ? element("i", {}, " inlined") : null, frame.guess ? " ?" : null),
  element("span", {class: "where"}, sourceOf(frame) || frame.module || ""));
}

export function showStack({objects, messages}) {
  fill(byId("frames"), objects.map(frameRow), objects.length === 0 ? element("p", {class: "none"}, messages) : null);
  byId("frames").querySelector(".selected")?.scrollIntoView({block: "nearest"});
}

// ---- variables ----

const watched = []; // expressions
let before = new Map(); // expression -> value at the place before
let now = new Map();
let lastLocals = null;

const TOOLS = [
  ["history", "All its values", (name) => `history ${name}`],
  ["last store", "Go to the instruction that stored it last", (name) => `goto current backward store 1 of ${name}`],
  ["next store", "Go to the next store to it", (name) => `goto current forward store 1 of ${name}`],
  ["why", "Where its value came from", (name) => `why ${name}`],
  ["memory", "The bytes that it lies in", null],
];
const FUNCTION_TOOLS = [
  ["calls", "All calls, with parameters and results", (name) => `calls ${name}`],
  ["next call", "Go to the next call", (name) => `goto current forward func_enter 1 where func==${name}`],
  ["call before", "Go to the call before", (name) => `goto current backward func_enter 1 where func==${name}`],
  ["instructions", "All of its instructions", (name) => `disas ${name}`],
];

function tools(name, ctype) {
  const isFunction = /^[^(]*\(/.test(ctype || "") && !/^[^(]*\(\*/.test(ctype);
  return element("div", {class: "tools"}, (isFunction ? FUNCTION_TOOLS : TOOLS).map(([label, title, line]) =>
    element("button", {title, onclick: (event) => {
      event.stopPropagation();
      if (line)
        question(line(name));
      else
        showMemoryAt(`&(${name})`);
    }}, label)),
  watched.includes(name) ? element("button", {onclick: () => unwatch(name)}, "do not watch") : element("button", {title: "Keep it in the list", onclick: () => watch(name)}, "watch"));
}

const isTree = (data) => typeof data === "object" && data !== null && !("text" in data && "addr" in data);

function members(name, data) {
  return Object.entries(data).map(([key, value]) => member(Array.isArray(data) ? `${name}[${key}]` : `${name}.${key}`, Array.isArray(data) ? `[${key}]` : key, value));
}

const leafText = (data) => (data === null ? "?" : typeof data === "object" ? `${data.addr} ${JSON.stringify(data.text)}` : typeof data === "string" ? data : String(data));

function member(path, label, data) {
  if (!isTree(data))
    return variable({name: path, label, value: leafText(data), data: null});
  return variable({name: path, label, value: Array.isArray(data) ? `[${data.length}]` : "{…}", data});
}

// A variable's line; a click opens its members and what can be asked about it.
function variable({name, label, value, ctype, data, known, certainty}) {
  const changed = before.has(name) && before.get(name) !== value;
  now.set(name, value);
  const summary = element("summary", {title: ctype ? `${ctype} ${name}` : name},
    element("span", {class: "name"}, label || name),
    element("span", {class: `value${known === false ? " unknown" : changed ? " changed" : ""}${isTree(data) ? " tree" : ""}`}, value), certaintyMark(certainty));
  const made = element("details", {class: "variable", "data-name": name}, summary);
  made.addEventListener("toggle", () => {
    if (made.open && made.childElementCount === 1)
      made.append(element("div", {class: "inside"}, tools(name, ctype), ctype ? element("span", {class: "type"}, ctype) : null, isTree(data) ? members(name, data) : null));
  });
  return made;
}

export async function showVariables(answer) {
  lastLocals = answer;
  before = now;
  now = new Map();
  const {objects, messages} = answer, at = place.at;
  const more = watched.length === 0 ? [] : (await ask({lines: watched.map((name) => `print ${name}`), at: place.at, thread: place.thread || undefined, frame: place.frame || undefined})).answers;
  if (at !== place.at)
    return;
  fill(byId("variables"),
    more.map((one, i) => (one.objects[0] ? variable({...one.objects[0], name: watched[i]}) : variable({name: watched[i], value: one.messages.split("\n")[0].replace("tbdq: ", ""), known: false}))),
    more.length > 0 ? element("hr", {}) : null,
    objects.map((object) => variable(object)),
    objects.length === 0 ? element("p", {class: "none"}, messages ? messages.split("\n")[0].replace("tbdq: ", "") : "This function has no variables.") : null);
}

export function watch(name) {
  if (!watched.includes(name))
    watched.push(name);
  if (lastLocals)
    showVariables(lastLocals).then(() => open(name));
}

function unwatch(name) {
  watched.splice(watched.indexOf(name), 1);
  showVariables(lastLocals);
}

function open(name) {
  const found = [...byId("variables").querySelectorAll("details")].find((details) => details.dataset.name === name);
  if (found) {
    found.open = true;
    found.scrollIntoView({block: "nearest"});
  }
  return found;
}

// A name in the source was clicked.
export function inspectName(name) {
  if (!open(name))
    watch(name);
}

// ---- registers, memory, instructions, threads: one at a time ----

let shownPart = "disas";
let memory = {address: "$rsp", answer: null};
const partAnswers = {};
const PARTS = [["disas", "Disassembly"], ["regs", "Registers"], ["memory", "Memory"], ["threads", "Threads"]];

function showRegisters({objects, messages}) {
  const [registers] = objects;
  if (!registers)
    return [element("p", {class: "none"}, messages)];
  const skipped = new Set(["time", "offset", "thread", "position"]);
  // Before a dump's end a value is an object that says how well it is known.
  const shown = Object.entries(registers).filter(([name]) => !skipped.has(name))
    .map(([name, value]) => (typeof value === "object" && value !== null ? [name, value.value ?? "?", value.certainty] : [name, value, null]))
    .filter(([, value]) => typeof value === "string");
  return [element("div", {class: "registers"}, shown.map(([name, value, certainty]) =>
    element("button", {class: value.length > 18 ? "register wide" : "register", title: `Where $${name} came from`, onclick: () => question(`why $${name}`)},
      element("span", {class: "name"}, name), element("span", {class: `value ${certainty ?? ""}`}, value), certaintyMark(certainty))))];
}

function instruction(object) {
  const at = eventPosition(object), isHere = at && at[0] === place.at[0] && at[1] === place.at[1];
  return element("a", {href: at ? hashOf({at, thread: place.thread}) : null, class: isHere ? "instruction current" : "instruction"},
    element("span", {class: "at"}, at ? positionText(at) : ""), element("span", {class: "where"}, object.pc), element("code", {}, object.text), element("span", {class: "where"}, sourceOf(object)));
}

function showInstructions({objects, messages}) {
  return objects.length === 0 ? [element("p", {class: "none"}, messages)] : objects.map(instruction);
}

function threadRow(thread) {
  const selected = place.thread ? thread.thread === place.thread : thread.control;
  return element("a", {href: hashOf({at: place.at, thread: thread.thread}), class: selected ? "frame selected" : "frame"},
    element("span", {class: "digits"}, String(thread.number)), element("span", {class: "function"}, thread.name || String(thread.thread), thread.control ? " *" : null),
    element("span", {class: "where"}, [thread.function, sourceOf(thread), `${grouped(thread.blocks)} blocks`].filter(Boolean).join("  ")));
}

const hexBytes = (text) => text.match(/../g) || [];
const printable = (byte) => (parseInt(byte, 16) >= 0x20 && parseInt(byte, 16) < 0x7f ? String.fromCharCode(parseInt(byte, 16)) : "·");

function dump({addr, bytes, certainty}) {
  const all = hexBytes(bytes), rows = [];
  for (let i = 0; i < all.length; i += 16) {
    const row = all.slice(i, i + 16);
    rows.push(`${(BigInt(addr) + BigInt(i)).toString(16).padStart(12, "0")}  ${row.join(" ").padEnd(47)}  ${row.map(printable).join("")}`);
  }
  return [certainty ? element("p", {class: "note"}, "The least of it is ", certaintyMark(certainty)) : null, element("pre", {class: "bytes"}, rows.join("\n"))];
}

function showMemory() {
  const input = element("input", {value: memory.address, "aria-label": "Address", spellcheck: "false", onkeydown: (event) => event.key === "Enter" && showMemoryAt(event.target.value)});
  const [answer] = memory.answer ? memory.answer.objects : [];
  return [element("label", {class: "address"}, "from ", input), answer ? dump(answer) : element("p", {class: "none"}, memory.answer ? memory.answer.messages : "")];
}

async function showMemoryAt(address) {
  memory = {address, answer: null};
  shownPart = "memory";
  await loadMemory();
}

async function loadMemory() {
  const at = place.at;
  const {answers} = await ask({lines: [`mem ${memory.address} 256`], at, thread: place.thread || undefined, frame: place.frame || undefined});
  [memory.answer] = answers;
  drawPart();
}

function drawPart() {
  const drawn = {disas: showInstructions, regs: showRegisters, threads: ({objects}) => objects.map(threadRow), memory: showMemory};
  if (isBefore(place.at) && shownPart === "disas")
    shownPart = "regs"; // its instructions are in the listing
  fill(byId("parts"), PARTS.filter(([name]) => name !== "disas" || !isBefore(place.at)).map(([name, title]) => element("button", {role: "tab", "aria-selected": String(name === shownPart), "data-part": name, onclick: () => showPart(name)}, title)));
  const answer = partAnswers[shownPart];
  fill(byId("part"), shownPart === "memory" || answer ? drawn[shownPart](answer) : []);
  byId("part").querySelector(".current")?.scrollIntoView({block: "nearest"});
}

export function showPart(name) {
  shownPart = name;
  if (name === "memory")
    loadMemory();
  else
    drawPart();
}

// The answers of view.json's "values", by line.
export function showMachine(answers) {
  for (const [name] of PARTS)
    partAnswers[name] = answers.find((answer) => answer.line.startsWith(name));
  if (shownPart === "memory")
    loadMemory();
  else
    drawPart();
}

export function selectFrame(step, count) {
  const next = Math.min(Math.max(place.frame + step, 0), count - 1);
  if (next !== place.frame)
    go({frame: next, thread: place.thread});
}
