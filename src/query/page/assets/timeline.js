// timeline.js - the run from left to right: windows, threads, calls, system calls, signals, bookmarks, the answers' positions.
//
// The server sums events for each pixel from its index; only what is in sight is asked for.  Where few system calls and
// signals are in sight, they are listed one by one.

import { byId, grouped } from "./dom.js";
import { ask, recorded } from "./ask.js";
import { place, go, positionText } from "./place.js";

const HEIGHT_LINE = 92, THREAD_HEIGHT = 4, THREADS_MOST = 6, LISTED_MOST = 400, LISTED_BLOCKS = 3e7;
const DELAY = 60; // ms before a new stretch is asked for

let total = 1;         // block entries in the run
let sight = [0, 1];    // times at the canvas' edges
let cursor = null;     // the time under the mouse or the keyboard's mark
let sums = null;       // answer of the server, with its `sight`
let listed = [];       // {time, kind, text} one by one
let marks = [], found = [];
let waiting = null, stop = null;
let looked = () => {};

// Hears of each new stretch in sight.
export function onSight(listener) {
  looked = listener;
}

export const spanInSight = () => [Math.max(0, Math.floor(sight[0])), Math.max(1, Math.ceil(sight[1]))];

const canvas = () => byId("timeline");
const xOf = (time) => ((time - sight[0]) / (sight[1] - sight[0])) * canvas().clientWidth;
const timeAt = (x) => sight[0] + (x / canvas().clientWidth) * (sight[1] - sight[0]);

// ---- what is asked ----

async function load() {
  stop?.abort();
  stop = new AbortController();
  const {signal} = stop, span = spanInSight(), pixels = Math.min(4000, Math.max(1, canvas().clientWidth));
  try {
    const answer = await ask({sums: pixels, span}, {signal, quiet: true});
    if (signal.aborted)
      return;
    sums = {...answer, sight: recorded ? [0, total] : span};
    draw();
    looked();
    await list(span, signal);
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted)
      byId("hover").textContent = error.message;
  }
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

async function list(span, signal) {
  const few = (kind) => sum(sums[kind]) > 0 && sum(sums[kind]) <= LISTED_MOST;
  const lines = span[1] - span[0] > LISTED_BLOCKS || recorded ? [] : [few("syscalls") && "syscalls", few("signals") && "signals"].filter(Boolean);
  listed = [];
  if (lines.length > 0) {
    const {answers} = await ask({lines, span}, {signal, quiet: true});
    if (signal.aborted)
      return;
    listed = answers.flatMap(({line, objects}) => objects.filter((object) => object.time !== undefined).map((object) =>
      ({at: [object.time, object.offset], kind: line, text: object.call || object.signal})));
  }
  draw();
}

function loadSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(load, DELAY);
}

// ---- drawing ----

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// Heights of bars on a scale on which one event is seen beside a million.
function bars(context, counts, {top, height, fill}) {
  const most = Math.max(...counts);
  if (!(most > 0))
    return;
  const [from, until] = sums.sight, width = (until - from) / counts.length;
  context.fillStyle = fill;
  counts.forEach((count, i) => {
    if (count <= 0)
      return;
    const x = xOf(from + i * width), tall = Math.max(1, height * Math.log(1 + count) / Math.log(1 + most));
    context.fillRect(x, top + height - tall, Math.max(1, xOf(from + (i + 1) * width) - x), tall);
  });
}

function drawWindows(context) {
  const colors = [color("--lane"), color("--lane-other")];
  sums.windows.forEach(([time, blocks], i) => {
    context.fillStyle = colors[i % 2];
    context.fillRect(xOf(time), 0, Math.max(1, xOf(time + blocks) - xOf(time)), 8);
  });
}

function drawThreads(context) {
  const [from, until] = sums.sight;
  sums.threads.slice(0, THREADS_MOST).forEach(({runs}, row) => {
    context.fillStyle = color(`--thread-${row % 4}`);
    const width = (until - from) / runs.length;
    runs.forEach((ran, i) => ran && context.fillRect(xOf(from + i * width), 11 + row * (THREAD_HEIGHT + 1), Math.max(1, xOf(from + (i + 1) * width) - xOf(from + i * width) + 0.5), THREAD_HEIGHT));
  });
}

function tick(context, time, top, height, fill) {
  context.fillStyle = fill;
  context.fillRect(Math.round(xOf(time)), top, 1, height);
}

function needle(context, time, fill, width) {
  const x = xOf(time);
  context.fillStyle = fill;
  context.fillRect(Math.round(x - width / 2), 0, width, HEIGHT_LINE);
}

function drawPlaces(context) {
  for (const time of found) {
    context.fillStyle = color("--accent");
    context.beginPath();
    context.arc(xOf(time), HEIGHT_LINE - 4, 2.5, 0, 7);
    context.fill();
  }
  for (const {time, name} of marks) {
    tick(context, time, 8, HEIGHT_LINE - 8, color("--mark"));
    context.fillStyle = color("--mark");
    context.fillText(`@${name}`, xOf(time) + 3, HEIGHT_LINE - 8);
  }
  if (cursor !== null)
    needle(context, cursor, color("--faint"), 1);
  needle(context, place.at[0], color("--accent"), 2);
}

export function draw() {
  const element = canvas(), scale = devicePixelRatio || 1, width = element.clientWidth;
  element.width = width * scale;
  element.height = HEIGHT_LINE * scale;
  const context = element.getContext("2d");
  context.scale(scale, scale);
  context.font = "11px system-ui, sans-serif";
  context.clearRect(0, 0, width, HEIGHT_LINE);
  if (sums) {
    drawWindows(context);
    drawThreads(context);
    const top = 12 + Math.min(THREADS_MOST, sums.threads.length) * (THREAD_HEIGHT + 1), half = (HEIGHT_LINE - top - 8) / 2;
    bars(context, sums.calls, {top, height: half, fill: color("--calls")});
    if (listed.some(({kind}) => kind === "syscalls"))
      listed.forEach(({at, kind}) => kind === "syscalls" && tick(context, at[0], top + half + 2, half, color("--syscalls")));
    else
      bars(context, sums.syscalls, {top: top + half + 2, height: half, fill: color("--syscalls")});
    bars(context, sums.signals, {top: top + half + 2, height: half, fill: color("--signals")});
  }
  drawPlaces(context);
  byId("range").textContent = `${grouped(sight[0])} – ${grouped(sight[1])}${sums ? `   ${grouped(sum(sums.calls))} calls, ${grouped(sum(sums.syscalls))} system calls${sum(sums.signals) >= 1 ? `, ${grouped(sum(sums.signals))} signals` : ""}` : ""}`;
  element.setAttribute("aria-valuemin", "0");
  element.setAttribute("aria-valuemax", String(total));
  element.setAttribute("aria-valuenow", String(place.at[0]));
}

// ---- moving in it ----

function look(from, until) {
  const length = Math.min(Math.max(until - from, 20), total), start = Math.min(Math.max(from, 0), total - length);
  sight = [start, start + length];
  draw();
  loadSoon();
}

export function zoom(factor, around = place.at[0]) {
  look(around - (around - sight[0]) * factor, around + (sight[1] - around) * factor);
}

export function lookAtAll() {
  look(0, total);
}

export function pan(share) {
  const by = (sight[1] - sight[0]) * share;
  look(sight[0] + by, sight[1] + by);
}

// What is listed within a few pixels of x.
function nearest(x) {
  return listed.map((one) => ({...one, far: Math.abs(xOf(one.at[0]) - x)})).filter(({far}) => far < 4).sort((a, b) => a.far - b.far)[0];
}

function hover(x) {
  const near = nearest(x);
  cursor = Math.min(Math.max(Math.floor(timeAt(x)), 0), total - 1);
  byId("hover").textContent = near ? `${positionText(near.at)}  ${near.text}` : grouped(cursor);
  draw();
}

export function goToCursor() {
  if (cursor !== null)
    go({at: [cursor, 0], thread: 0});
}

export function moveCursor(pixels) {
  hover(xOf(cursor ?? place.at[0]) + pixels);
}

function startMouse(element) {
  let pressed = null;
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
      pan(event.deltaX / 800);
    else
      zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.offsetX));
  }, {passive: false});
  element.addEventListener("pointerdown", (event) => {
    pressed = {x: event.offsetX, sight, dragged: false};
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!pressed)
      return hover(event.offsetX);
    const by = ((pressed.x - event.offsetX) / element.clientWidth) * (sight[1] - sight[0]);
    pressed.dragged ||= Math.abs(pressed.x - event.offsetX) > 3;
    if (pressed.dragged)
      look(pressed.sight[0] + by, pressed.sight[1] + by);
    return undefined;
  });
  element.addEventListener("pointerup", (event) => {
    const near = nearest(event.offsetX);
    if (pressed && !pressed.dragged)
      go({at: near ? near.at : [Math.min(Math.max(Math.floor(timeAt(event.offsetX)), 0), total - 1), 0], thread: 0});
    pressed = null;
  });
  element.addEventListener("pointerleave", () => {
    cursor = null;
    byId("hover").textContent = "";
    draw();
  });
}

export function showMarks(objects) {
  marks = objects.filter(({name}) => name);
  draw();
}

export function showFound(positions) {
  found = positions.map(([time]) => time).slice(0, 2000);
  draw();
}

export function startTimeline(blocks) {
  total = Math.max(blocks, 1);
  sight = [0, total];
  startMouse(canvas());
  new ResizeObserver(() => {
    draw();
    loadSoon();
  }).observe(canvas());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
