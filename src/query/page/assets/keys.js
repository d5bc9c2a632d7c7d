// keys.js - steps as buttons, and everything from the keyboard.

import { byId, element, fill } from "./dom.js";
import { cancelAll } from "./ask.js";
import { question } from "./answers.js";
import { selectFrame, showPart } from "./state.js";
import { focusListing } from "./listing.js";
import { goToCursor, lookAtAll, moveCursor, pan, zoom } from "./timeline.js";

const STEPS = [
  ["«", "first state", "Home", "goto first"],
  ["⇤", "back to this function's call", "F", "reverse-finish"],
  ["↩", "back over calls", "N", "reverse-next"],
  ["↖", "back a line", "S", "reverse-step"],
  ["‹", "back an instruction", "I", "reverse-stepi"],
  ["›", "an instruction", "i", "stepi"],
  ["↘", "step a line", "s", "step"],
  ["↪", "next line, over calls", "n", "next"],
  ["⇥", "finish this function", "f", "finish"],
  ["»", "last state", "End", "goto last"],
];

let frameCount = () => 0;
let enlargePane = () => {};
let actions = {};

// What a dump has: it has no steps and no time line.
function dumpTable() {
  return {w: ["what ran last: arrows move there, Enter opens, g goes there", focusListing], v: ["what its rows in sight held, or close them", () => byId("in-sight").click()],
    End: ["the end", () => question("goto last")]};
}

const OF_TRACES = ["+", "-", "0", "h", "l", "e"];

function table_(isDump) {
  const others = {
    "/": ["ask a question", () => byId("question").focus()],
    p: ["type a position", () => byId("position").select()],
    "[": ["position before, as in a browser", () => history.back()],
    "]": ["position after", () => history.forward()],
    u: ["caller's frame", () => selectFrame(1, frameCount())],
    d: ["callee's frame", () => selectFrame(-1, frameCount())],
    "+": ["zoom the time line in", () => zoom(0.5)],
    "-": ["zoom it out", () => zoom(2)],
    0: ["all of the run", lookAtAll],
    h: ["look to the left", () => pan(-0.3)],
    l: ["look to the right", () => pan(0.3)],
    e: ["count executed lines in sight", () => byId("count").click()],
    c: ["copy a link to this position", () => byId("copy").click()],
    m: ["answers, or the pane with the focus, large or as before", () => enlargePane()],
    1: ["disassembly", () => showPart("disas")],
    2: ["registers", () => showPart("regs")],
    3: ["memory", () => showPart("memory")],
    4: ["threads", () => showPart("threads")],
    Escape: ["cancel what is being asked", cancelAll],
    "?": ["these keys", () => byId("keys").showModal()],
  };
  if (isDump)
    return {...dumpTable(), ...Object.fromEntries(Object.entries(others).filter(([key]) => !OF_TRACES.includes(key)))};
  return {...Object.fromEntries(STEPS.map(([, title, key, line]) => [key, [title, () => question(line)]])), ...others};
}

function inTimeline(event) {
  const moves = {ArrowLeft: () => moveCursor(-2), ArrowRight: () => moveCursor(2), PageUp: () => pan(-0.8), PageDown: () => pan(0.8), Enter: goToCursor};
  if (event.target.id !== "timeline" || !moves[event.key])
    return false;
  moves[event.key]();
  return true;
}

function pressedKey(event) {
  const isTyping = event.target.matches("input:not([type=checkbox]), textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping || byId("keys").open)
    return;
  if (inTimeline(event))
    event.preventDefault();
  else if (actions[event.key]) {
    event.preventDefault();
    actions[event.key][1]();
  }
}

export function startKeys(isDump, countFrames, enlargeIt) {
  frameCount = countFrames;
  enlargePane = enlargeIt;
  actions = table_(isDump);
  fill(byId("steps"), STEPS.map(([sign, title, key, line]) => element("button", {title: `${title}  (${key})`, "aria-label": title, "data-line": line, onclick: () => question(line)}, sign)));
  fill(byId("keys"), element("h2", {}, "Keys"), element("dl", {}, Object.entries(actions).flatMap(([key, [title]]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, title)])),
    element("form", {method: "dialog"}, element("button", {}, "close")));
  byId("help").addEventListener("click", () => byId("keys").showModal());
  addEventListener("keydown", pressedKey);
}
