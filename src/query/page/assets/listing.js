// listing.js - what ran last before a dump was made: lines, blocks or instructions, and beside each what it held.
//
// Rows come without values.  Those of a row are asked for when it is opened, from its position on, so a page of a long ring is there at
// once.  A row that stands for repeats has its value in each of them.  A page that is a file has all rows with their values.

import { byId, element, fill, grouped } from "./dom.js";
import { ask, recorded } from "./ask.js";
import { question } from "./answers.js";
import { pastValue } from "./certainty.js";
import { place, go, hashOf, isBefore, positionOf, positionText, samePosition } from "./place.js";
import { sourceButton } from "./rows.js";

const PAGE_ROWS = 400; // of a page of the listing
const ROUNDS = 12;     // of a loop that are shown at first
const INSIDE = 200;    // instructions of a row

const wish = {unit: "", thread: 0, from: null, // "-12": up to there, "-12 forward": from there on
  folds: true, only: "", variables: false, exact: false};
let ran = [];        // the rows that are shown
let ranThreads = [];
let listRequest = 0; // the latest request for rows
const opened = new Set(); // keys of rows that are open

// ---- questions ----

const threadWords = () => (wish.thread ? `thread ${wish.thread}` : "");
const sentence = (...words) => words.filter(Boolean).join(" ");

function valueWords() {
  const only = wish.only.replace(/\s+/g, "").replace(/^,+|,+$/g, "");
  return sentence("--values", only && `--only ${only}`, wish.variables && "--variables", wish.exact && "--exact");
}

function listingLine(count = PAGE_ROWS) {
  if (recorded)
    return sentence(`path ${count}`, wish.unit, "text --values");
  return sentence(`path ${count}`, wish.unit, "text", wish.folds && "fold", threadWords(), wish.from && `from ${wish.from}`);
}

// The rows from a position on, with their values.
const rowsLine = (count, unit, back) => sentence(`path ${count}`, unit, "text", threadWords(), `from ${back} forward`, valueWords());

async function rowsOf(line) {
  const {answers: [answer]} = await ask({lines: [line], rows: 5000});
  if (!answer)
    throw new DOMException("cancelled", "AbortError");
  return {rows: answer.objects.filter(({type}) => type !== "end"), end: answer.objects.find(({type}) => type === "end"), messages: answer.messages};
}

// ---- what a row held ----

const isRegister = (name) => /^(r[a-ds]x|r[sb]p|r[sd]i|r\d+|[fg]s_base)$/.test(name);

// What can be asked about a value there.
function valueButtons(name, where) {
  if (recorded || /[[\]]/.test(name))
    return null;
  const expression = isRegister(name) ? `$${name}` : name;
  const button = (title, line) => element("button", {class: "small", title, onclick: () => question(line, {where})}, line.split(" ")[0]);
  return [button("Where its value came from", `why ${expression}`), isRegister(name) ? null : button("Its values over time", `history ${expression}`)];
}

const keyOf = ({thread, back}) => `${thread} ${back}`;
const whereOf = ({back, thread}) => ({at: positionOf(back), thread});

function heldBy(row) {
  const {values = []} = row;
  return values.length > 0 ? values.map((value) => pastValue(value, row.thread, valueButtons(value.name, whereOf(row))))
    : element("p", {class: "none"}, wish.only ? "Nothing of what is wanted." : "It uses nothing that is followed.");
}

const notKnown = (messages) => element("p", {class: "none"}, (messages || "It held nothing that is known.").replace(/^tbdq: /gm, "").trim());

// The values of one row: of two that begin there the first, which needs the second for what it held afterwards.
async function showHeld(data, row, unit) {
  const {rows, messages} = recorded ? {rows: [row]} : await rowsOf(rowsLine(2, unit, row.back));
  fill(data, rows[0]?.values ? heldBy(rows[0]) : notKnown(messages));
}

// A row of a loop, in each round.
async function showRounds(data, row, index, most) {
  const group = index - row.place, first = ran[group], rounds = Math.min(row.times, most);
  const {rows, messages} = await rowsOf(rowsLine(row.loop * rounds + 1, wish.unit, first.back));
  const mine = rows.filter((one, i) => i % row.loop === row.place && one.pc === row.pc).slice(0, rounds);
  fill(data, mine.map((one, i) => element("div", {class: "round"}, element("span", {class: "note"}, `${grouped(i + 1)} of ${grouped(row.times)} `), positionButton(one), heldBy(one))),
    mine.length === 0 ? notKnown(messages) : null,
    rounds < row.times && most < 5000 / row.loop ? element("button", {class: "small", onclick: () => showRounds(data, row, index, most * 4)}, "more rounds") : null);
}

// ---- rows ----

function positionButton(row) {
  const where = whereOf(row), isHere = isBefore(place.at) && samePosition(where.at, place.at);
  return element("a", {href: recorded ? null : hashOf(where), class: "at", tabindex: -1, "aria-current": isHere ? "true" : null}, row.back);
}

function insideButton(row, inside) {
  const show_ = async () => {
    const {rows} = await rowsOf(rowsLine(Math.min(row.insns, INSIDE), "insns", row.back));
    fill(inside, rows.map((one) => ranRow(one, null, "insns")), row.insns > INSIDE ? element("p", {class: "note"}, `These are the first ${INSIDE} of ${grouped(row.insns)} instructions.`) : null);
  };
  return element("button", {class: "small", title: "Its instructions, one by one", onclick: () => (inside.childElementCount === 0 ? show_() : fill(inside))}, `${grouped(row.insns)} instructions`);
}

const noteOf = (row) => [row.times ? `${grouped(row.times)} times${row.loop > 1 ? `, with ${row.loop} rows` : ""}` : "", row.blocks > 1 ? `${grouped(row.blocks)} blocks` : "", row.cut ? "cut short" : "",
  row.uncertain ? "how far it ran is not certain" : ""].filter(Boolean).join("  ");

// A row, closed; `index` in the listing, null: inside another.
function ranRow(row, index, unit) {
  const data = element("div", {class: "data", hidden: true}), inside = element("div", {class: "inner"});
  const opener = element("button", {class: "opener", "aria-expanded": "false", title: "What it held"}, element("span", {class: "code"}, unit === "insns" ? row.insn : row.text ?? row.insn ?? ""));
  const made = element("div", {class: row.times ? "ran folded" : "ran", "data-back": row.back, "data-thread": row.thread, "data-pc": row.pc},
    positionButton(row),
    element("div", {class: "line"}, opener, element("div", {class: "where"}, [row.function, " ", row.source ? sourceButton(row, row.source) : row.pc], noteOf(row) ? element("span", {class: "times"}, noteOf(row)) : null,
      !recorded && unit !== "insns" && row.insns > 1 && !row.times ? insideButton(row, inside) : null), inside),
    data);
  const key = keyOf(row);
  made.toggleRow = async (opens) => {
    opener.setAttribute("aria-expanded", String(opens));
    data.hidden = !opens;
    opened[opens ? "add" : "delete"](key);
    if (!opens || data.childElementCount > 0)
      return;
    fill(data, element("p", {class: "none"}, "…"));
    try {
      await (row.times && index !== null ? showRounds(data, row, index, ROUNDS) : showHeld(data, row, unit));
    } catch (error) {
      fill(data);
      made.toggleRow(false);
      throwUnlessCancelled(error);
    }
  };
  opener.addEventListener("click", () => made.toggleRow(data.hidden));
  return made;
}

function throwUnlessCancelled(error) {
  if (error.name !== "AbortError")
    fill(byId("ended"), element("span", {class: "wrong"}, error.message));
}

function drawListing(messages) {
  fill(byId("rows"), ran.map((row, i) => ranRow(row, i, wish.unit)), ran.length === 0 ? notKnown(messages || "Nothing ran there.") : null);
  openRows(ran.map((row, i) => (opened.has(keyOf(row)) ? i : -1)).filter((i) => i >= 0)).catch(throwUnlessCancelled);
  byId("later").disabled = wish.from === null || recorded !== null;
  byId("earlier").disabled = ran.length === 0 || (!/forward/.test(wish.from) && ran.length < PAGE_ROWS) || recorded !== null;
}

// Opens rows of the listing: what those that follow each other held is one question.
async function openRows(indices) {
  const made = [...byId("rows").children], mine = listRequest;
  const isSingle = (i) => !recorded && !ran[i].times && made[i].querySelector(".data").childElementCount === 0;
  for (let k = 0; k < indices.length && mine === listRequest && made[0]?.isConnected;) {
    const first = indices[k];
    let count = 0;
    while (k + count < indices.length && indices[k + count] === first + count && isSingle(first + count))
      count++;
    if (count < 2) {
      await made[first].toggleRow(true);
      k++;
      continue;
    }
    const {rows, messages} = await rowsOf(rowsLine(count + 1, wish.unit, ran[first].back));
    for (let i = 0; i < count; i++) {
      const isSame = rows[i]?.back === ran[first + i].back && rows[i].values;
      if (isSame || rows.length === 0)
        fill(made[first + i].querySelector(".data"), isSame ? heldBy(rows[i]) : notKnown(messages));
      await made[first + i].toggleRow(true);
    }
    k += count;
  }
}

// Which row of its loop each one is.
function placeInLoops(rows) {
  for (let i = 0; i < rows.length;)
    for (let k = 0, {loop = 1} = rows[i]; k < loop && i < rows.length; k++, i++)
      rows[i].place = k;
  return rows;
}

async function listRows() {
  const mine = listRequest += 1;
  try {
    const {rows, messages} = await rowsOf(listingLine());
    if (mine !== listRequest)
      return;
    ran = placeInLoops(rows.filter(({thread}) => !wish.thread || thread === wish.thread));
    drawListing(messages);
    if (!/forward/.test(wish.from))
      byId("rows").scrollTop = byId("rows").scrollHeight;
    markListing();
  } catch (error) {
    throwUnlessCancelled(error);
  }
}

// ---- where it is ----

const backOf = (row) => -positionOf(row.back)[0];

function earlier() {
  wish.from = `-${backOf(ran[0])}`;
  return listRows();
}

function later() {
  const next = ran.length === 0 ? 1 : backOf(ran.at(-1));
  wish.from = next <= 1 ? null : `-${next} forward`;
  return listRows();
}

const inOrder = ([back, insn]) => back * 65536 + insn;

// The row that has the place is marked, and in sight.  A loop's row has it only at its beginning: which round it is in is not known here.
function markListing() {
  const here = isBefore(place.at) ? inOrder(place.at) : -Infinity;
  let found = null;
  for (const made of byId("rows").querySelectorAll(":scope > .ran")) {
    made.classList.remove("current");
    if (inOrder(positionOf(made.dataset.back)) <= here)
      found = made;
  }
  if (!found || (place.thread && Number(found.dataset.thread) !== place.thread) || (found.classList.contains("folded") && found.dataset.back !== positionText(place.at)))
    return;
  found.classList.add("current");
  found.scrollIntoView({block: "nearest"});
}

function isListed(at) {
  return ran.length > 0 && inOrder(positionOf(ran[0].back)) <= inOrder(at) && (wish.from === null || inOrder(at) <= inOrder(positionOf(ran.at(-1).back)));
}

// A new place of the page.
export async function arriveInListing() {
  const otherThread = isBefore(place.at) && place.thread !== 0 && place.thread !== wish.thread;
  if (otherThread && ranThreads.includes(place.thread)) {
    wish.thread = place.thread;
    byId("ran-thread").value = String(wish.thread);
  }
  if (isBefore(place.at) && !recorded && (otherThread || !isListed(place.at))) {
    wish.from = `-${-place.at[0] + 40} forward`;
    await listRows();
  }
  markListing();
}

// ---- the toolbar ----

function again(change) {
  change();
  if (!recorded)
    opened.clear();
  return listRows();
}

// Values alone have changed: the rows stay, and those that are open are asked again.
function askValuesAgain(change) {
  change();
  drawListing();
  markListing();
}

// What the rows in sight held, or nothing of it.
async function openInSight() {
  const sight = byId("rows").getBoundingClientRect();
  const made = [...byId("rows").children];
  const seen = ran.map((_, i) => i).filter((i) => {
    const {top, bottom} = made[i].getBoundingClientRect();
    return bottom > sight.top && top < sight.bottom;
  });
  if (seen.some((i) => !opened.has(keyOf(ran[i]))))
    return openRows(seen);
  return seen.forEach((i) => made[i].toggleRow(false));
}

function asText() {
  const count = Math.min(PAGE_ROWS, 400);
  return question(sentence(`path ${count}`, wish.unit, threadWords(), wish.from && `from ${wish.from}`, valueWords(), "--why"), {text: true});
}

function pressedInListing(event) {
  const openers = [...byId("rows").querySelectorAll(".opener")], at = openers.indexOf(document.activeElement);
  const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20}[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey || openers.length === 0)
    return;
  if (step) {
    openers[Math.min(Math.max(at < 0 ? (step > 0 ? 0 : openers.length - 1) : at + step, 0), openers.length - 1)].focus();
  } else if (at >= 0 && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
    openers[at].closest(".ran").toggleRow(event.key === "ArrowRight");
  } else if (at >= 0 && event.key === "g") {
    const {back, thread} = openers[at].closest(".ran").dataset;
    go({at: positionOf(back), thread: Number(thread)});
  } else {
    return;
  }
  event.preventDefault();
  event.stopPropagation();
}

export const focusListing = () => (byId("rows").querySelector(".current .opener") ?? [...byId("rows").querySelectorAll(".opener")].at(-1))?.focus();

// ---- the dial ----

function showDial(setting) {
  byId("dial").hidden = setting.record === null;
  fill(byId("record"), Array.from({length: setting.most + 1}, (_, i) => element("option", {value: i, selected: i === setting.record}, String(i))));
  byId("record").value = String(setting.record);
}

// How much the process that left the dump records, if it goes on.
async function dial(body) {
  const reply = await fetch("dial", body === undefined ? {} : {method: "POST", body: JSON.stringify(body)});
  if (reply.ok)
    return showDial(await reply.json());
  throwUnlessCancelled(new Error(await reply.text()));
  return dial();
}

function showEnd(end) {
  const {signal, reason, addr, thread, function: name, module} = end ?? {};
  fill(byId("ended"), end ? [signal || (thread ? "ended" : "no signal of its own"), reason, addr && `at ${addr}`, thread && `thread ${thread}`, name && `in ${module}!${name}`].filter(Boolean).join("  ") : "");
}

function startThreads(rows, end) {
  ranThreads = [...new Set(rows.map(({thread}) => thread))];
  wish.thread = ranThreads.includes(end?.thread) ? end.thread : ranThreads.at(-1) ?? 0;
  fill(byId("ran-thread"), ranThreads.map((thread) => element("option", {value: thread}, String(thread))));
  byId("ran-thread").value = String(wish.thread);
  byId("ran-thread").parentElement.hidden = ranThreads.length < 2;
}

export async function startListing(dumpLines) {
  const on = (id, type, listener) => byId(id).addEventListener(type, listener);
  on("unit", "change", ({target}) => again(() => { wish.unit = target.value; }));
  on("ran-thread", "change", ({target}) => again(() => Object.assign(wish, {thread: Number(target.value), from: null})));
  on("folds", "change", ({target}) => again(() => { wish.folds = target.checked; }));
  on("only", "change", ({target}) => askValuesAgain(() => { wish.only = target.value; }));
  on("variables-only", "change", ({target}) => askValuesAgain(() => { wish.variables = target.checked; }));
  on("assumes", "change", ({target}) => askValuesAgain(() => { wish.exact = !target.checked; }));
  on("earlier", "click", earlier);
  on("later", "click", later);
  on("in-sight", "click", () => openInSight().catch(throwUnlessCancelled));
  on("as-text", "click", asText);
  on("record", "change", ({target}) => dial({record: Number(target.value)}));
  on("rows", "keydown", pressedInListing);
  const {rows, end} = await rowsOf(dumpLines[0]);
  showEnd(end);
  startThreads(rows, end);
  if (!recorded)
    dial();
  await listRows();
}
