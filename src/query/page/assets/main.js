// main.js - starts the page, and shows each new place.

import { byId, element, fill, baseName, grouped } from "./dom.js";
import { ask, cancelAll, onProgress, recorded, Refused } from "./ask.js";
import { place, go, isBefore, onPlace, positionOf, positionText, startPlaces } from "./place.js";
import { onAnswer, onMark, startAnswers } from "./answers.js";
import { onSource } from "./rows.js";
import { countLines, onName, showSource, showSourceOf, startSource } from "./source.js";
import { inspectName, showMachine, showStack, showVariables } from "./state.js";
import { draw, lookAtAll, onSight, showFound, showMarks, spanInSight, startTimeline, zoom } from "./timeline.js";
import { startQuestion } from "./question.js";
import { arriveInListing, startListing } from "./listing.js";
import { startKeys } from "./keys.js";

const KEPT = 100; // places whose answers are kept

let view = null;         // view.json: what is asked at each place
let leaving = null;      // cancels the questions of the place before
let frames = [];
let counting = false;
let isDump = false;
const known = new Map(); // place and group -> answers

// ---- a place ----

async function answersAt(group, signal) {
  const key = `${group} ${JSON.stringify(place)}`;
  if (!known.has(key)) {
    const answer = await ask({lines: view[group], at: place.at, thread: place.thread || undefined, frame: place.frame || undefined}, {signal});
    if (answer.interrupted)
      throw new DOMException("cancelled", "AbortError");
    known.set(key, answer.answers);
    if (known.size > KEPT)
      known.delete(known.keys().next().value);
  }
  return known.get(key);
}

function showPlace([where, stack, source]) {
  const [event] = where.objects;
  frames = stack.objects;
  showStack(stack);
  showSource(source, frames[place.frame]);
  if (source.objects.length === 0 && event?.source) // a process that was killed has no values, but lines
    showSourceOf(ask, event.source);
  byId("position").value = positionText(place.at);
  byId("position").title = event ? [event.wall, event.function, event.text ?? event.insn].filter(Boolean).join("  ") : "";
  byId("position").classList.toggle("wrong", where.status !== 0);
  document.title = `${positionText(place.at)} ${event && event.function ? event.function : ""} – ${byId("program").textContent}`;
}

async function arrive() {
  leaving?.abort();
  leaving = new AbortController();
  const {signal} = leaving;
  draw();
  try {
    if (isDump)
      await arriveInListing();
    const before = isBefore(place.at);
    const placed = await answersAt(before ? "before" : "place", signal);
    if (signal.aborted)
      return;
    showPlace(placed);
    const valued = await answersAt(before ? "before values" : "values", signal);
    if (signal.aborted)
      return;
    showMachine(valued);
    await showVariables(valued.find(({line}) => line === "locals"));
    if (counting)
      countInSight();
  } catch (error) {
    tellFailure(error, signal);
  }
  document.documentElement.dataset.at = positionText(place.at); // all of it is shown
}

function tellFailure(error, signal) {
  if (error.name === "AbortError" || signal.aborted)
    return;
  if (!(error instanceof Refused))
    throw error;
  byId("doing").textContent = error.message;
  byId("busy").hidden = false;
  byId("progress").hidden = byId("cancel").hidden = true;
}

// ---- what is around it ----

// How often each line of the file ran in the stretch in sight, as long as that is wanted.
function countInSight() {
  countLines(ask, counting ? spanInSight() : null).catch((error) => tellFailure(error, {aborted: false}));
}

function showProgress(progress) {
  const running = progress && progress.running, bar = byId("progress");
  byId("busy").hidden = !running;
  if (!running)
    return;
  bar.hidden = byId("cancel").hidden = false;
  if (running.total > 0)
    Object.assign(bar, {max: running.total, value: running.done});
  else
    bar.removeAttribute("value");
  const parts_ = [running.line, running.total > 0 ? `${running.what} ${running.done} of ${running.total} windows` : ""];
  byId("doing").textContent = parts_.filter(Boolean).join("  ");
}

async function showAllMarks() {
  const {answers} = await ask({lines: view.start});
  showMarks(answers[0].objects);
}

// On a narrow page one pane is shown at a time.
function startTabs() {
  const panes = [...document.querySelectorAll(".pane:not([hidden])")];
  const choose_ = (id) => {
    for (const pane of panes)
      pane.classList.toggle("chosen", pane.id === id);
    for (const button of byId("tabs").children)
      button.setAttribute("aria-pressed", String(button.dataset.pane === id));
  };
  fill(byId("tabs"), panes.map((pane) => element("button", {"data-pane": pane.id, onclick: () => choose_(pane.id)}, pane.dataset.title)));
  choose_(panes[0].id);
  onAnswer(() => choose_("answers"));
}

// A pane as large as all of them, and back.
function enlarge(pane) {
  pane.classList.toggle("large");
  for (const other of document.querySelectorAll(".pane.large"))
    if (other !== pane)
      other.classList.remove("large");
}

function startButtons() {
  for (const title of document.querySelectorAll(".pane h2:not(#parts)")) {
    title.title = "Larger, or as before";
    title.addEventListener("click", () => enlarge(title.parentElement));
  }
  byId("back").addEventListener("click", () => history.back());
  byId("forth").addEventListener("click", () => history.forward());
  byId("copy").addEventListener("click", () => navigator.clipboard?.writeText(location.href));
  byId("cancel").addEventListener("click", cancelAll);
  byId("out").addEventListener("click", lookAtAll);
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("count").addEventListener("click", () => {
    counting = !counting;
    byId("count").setAttribute("aria-pressed", String(counting));
    countInSight();
  });
  byId("position").addEventListener("change", ({target}) => {
    const at = positionOf(target.value);
    if (at && (isDump || !isBefore(at)))
      go({at, thread: 0});
    else
      target.value = positionText(place.at);
  });
}

async function start() {
  onProgress(showProgress);
  view = recorded ? recorded.view : await (await fetch("view.json")).json();
  const begin = await ask({begin: true});
  byId("program").textContent = `${baseName(begin.program)} ${begin.pid}`;
  byId("program").title = [begin.args.join(" "), begin.end && `ended: ${begin.end}`, `${grouped(begin.blocks)} blocks in ${begin.windows} windows`].filter(Boolean).join("\n");
  document.body.classList.toggle("recorded", Boolean(recorded));
  document.body.classList.toggle("dump", begin.dump);
  isDump = begin.dump;
  byId("listing").hidden = !isDump;
  startTimeline(begin.blocks);
  startSource();
  startQuestion();
  startKeys(isDump, () => frames.length, () => enlarge(document.activeElement?.closest?.(".pane") ?? byId("answers")));
  startButtons();
  startTabs();
  onName(inspectName);
  onAnswer(showFound);
  onMark(showAllMarks);
  onSight(() => counting && countInSight());
  onSource((where) => showSourceOf(ask, where));
  onPlace(arrive);
  if (isDump)
    await startListing(view.dump);
  startPlaces(begin);
  startAnswers();
  await showAllMarks();
}

start().catch((error) => {
  byId("doing").textContent = error.message;
  byId("busy").hidden = false;
});
