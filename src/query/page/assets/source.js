// source.js - the source of the selected frame: the line, what ran (counts), names to click.

import { byId, element, fill, baseName, grouped } from "./dom.js";
import { question } from "./answers.js";

const KEYWORDS = new Set(("alignas alignof auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false float for friend " +
  "goto if inline int long mutable namespace new noexcept nullptr operator private protected public register restrict return short signed sizeof static struct switch template " +
  "this throw true try typedef typename union unsigned using virtual void volatile wchar_t while NULL").split(" "));
const TOKEN = /(\/\/.*|\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(^\s*#\s*\w+)|([A-Za-z_]\w*)|(0[xX][\da-fA-F]+\w*|\d[\d.]*\w*)/g;

let file = null;   // full name of the file that is shown
let counts = null; // line -> how often it began in the stretch that was counted
let countedFor = null; // file and stretch
let inspect = () => {};

export function onName(listener) {
  inspect = listener;
}

export const shownFile = () => file;

function token([text, comment, string, directive, name, number]) {
  if (comment !== undefined)
    return element("span", {class: "comment"}, text);
  if (string !== undefined)
    return element("span", {class: "string"}, text);
  if (directive !== undefined || (name !== undefined && KEYWORDS.has(name)))
    return element("span", {class: "keyword"}, text);
  if (number !== undefined)
    return element("span", {class: "digits"}, text);
  return element("span", {class: "name"}, text);
}

// The parts of a line of C; a comment over several lines is told by `inside`.
function parts(text, inside) {
  if (inside)
    return [element("span", {class: "comment"}, text)];
  const found = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    found.push(text.slice(end, match.index), token(match));
    end = match.index + match[0].length;
  }
  found.push(text.slice(end));
  return found.filter((part) => part !== "");
}

// Is the text after this line still in a comment?
function staysInside(text, inside) {
  const open = text.lastIndexOf("/*"), close = text.lastIndexOf("*/"), line = text.indexOf("//");
  return close > open ? false : open >= 0 && (line < 0 || line > open) ? true : inside && close < 0;
}

function countOf(line, most) {
  const count = counts && counts.get(line);
  if (!count)
    return element("span", {class: "count"}, "");
  const share = Math.log(1 + count) / Math.log(1 + most);
  const made = element("span", {class: "count ran", title: `began ${grouped(count)} times in the stretch in sight`}, count < 100000 ? String(count) : `${(count / 1e6).toPrecision(2)}M`);
  made.style.setProperty("--share", `${Math.round(share * 100)}%`);
  return made;
}

function lineOf({line, text, current}, inside, most) {
  const number = element("button", {class: "number", tabindex: -1, title: `When line ${line} was executed`, onclick: () => question(`lines ${baseName(file)}:${line}`)}, String(line));
  const code = element("code", {}, parts(text, inside && staysInside(text, true)));
  return element("div", {class: current ? "row current" : "row", "data-line": line, "aria-current": current ? "true" : null}, countOf(line, most), number, code);
}

function clicked(event) {
  if (event.target.classList.contains("name") && getSelection().isCollapsed)
    inspect(event.target.textContent);
}

export function showSource({objects, messages}, frame) {
  const pane = byId("code");
  if (objects.length === 0) {
    file = null;
    byId("file").textContent = frame && frame.file ? `${frame.file}:${frame.line}` : "Source";
    fill(pane, element("p", {class: "none"}, messages ? messages.replace(/^tbdq: /gm, "").replace(/\nhint: .*/s, "") : "There is no source for this code."),
      element("p", {class: "none"}, "Its instructions are under Disassembly; choose a caller's frame for its source."));
    return;
  }
  if (file !== objects[0].file)
    counts = countedFor = null;
  file = objects[0].file;
  shownObjects = objects;
  drawSource();
}

// Another place, "file.c:12": its line is marked, and the frame's source comes back with the next place.
export async function showSourceOf(ask, place) {
  const {answers: [answer]} = await ask({lines: [`list ${place} 400`]});
  if (answer.objects.length === 0)
    return;
  const line = Number(place.replace(/.*:/, ""));
  showSource({...answer, objects: answer.objects.map((object) => ({...object, current: object.line === line}))});
}

let shownObjects = [];

function drawSource() {
  const pane = byId("code"), most = counts ? Math.max(1, ...counts.values()) : 1;
  const current = shownObjects.find((object) => object.current);
  let inside = false;
  byId("file").textContent = `${baseName(file)}${current ? `:${current.line}` : ""}`;
  byId("file").title = `${file}: click to enlarge`;
  pane.classList.toggle("counted", counts !== null);
  fill(pane, shownObjects.map((object) => {
    const row = lineOf(object, inside, most);
    inside = staysInside(object.text, inside);
    return row;
  }));
  pane.querySelector(".current")?.scrollIntoView({block: "center"});
}

// Counts how often each line of the file began in the stretch [since, until); without a stretch shows no counts.
export async function countLines(ask, span) {
  const wanted = span && file ? `${file} ${span}` : null;
  if (wanted === countedFor)
    return;
  countedFor = wanted;
  if (!wanted) {
    counts = null;
    if (file)
      drawSource();
    return;
  }
  const answer = await ask({lines: [`count line where src=<${baseName(file)}> by line`], span});
  const [first] = answer.answers;
  if (!first || first.status > 1 || wanted !== countedFor)
    return;
  counts = new Map(first.objects.filter((object) => object.by).map((object) => [Number(object.by.replace(/.*:/, "")), object.count]));
  drawSource();
}

export function startSource() {
  byId("code").addEventListener("click", clicked);
}
