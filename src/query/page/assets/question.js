// question.js - the box for questions: completion as one types, history with the arrows.

import { byId, element, fill } from "./dom.js";
import { ask } from "./ask.js";
import { place } from "./place.js";
import { question } from "./answers.js";

const past = [];
let older = 0;     // how far back in `past` the box is
let words = [];    // completions
let chosen = -1;   // of them
let from = 0;      // where the completed word begins
let asked = 0;     // the latest request for completions

const box_ = () => byId("question");

function close_() {
  words = [];
  chosen = -1;
  byId("words").hidden = true;
  box_().setAttribute("aria-expanded", "false");
}

function drawWords() {
  const list = byId("words");
  list.hidden = words.length === 0;
  box_().setAttribute("aria-expanded", String(words.length > 0));
  fill(list, words.map((word, i) => element("li", {role: "option", id: `word-${i}`, "aria-selected": String(i === chosen), onpointerdown: (event) => {
    event.preventDefault();
    chosen = i;
    takeWord();
  }}, word)));
  box_().setAttribute("aria-activedescendant", chosen >= 0 ? `word-${chosen}` : "");
  list.querySelector("[aria-selected=true]")?.scrollIntoView({block: "nearest"});
}

async function complete() {
  const text = box_().value.slice(0, box_().selectionStart), mine = asked += 1;
  if (text.trim() === "")
    return close_();
  try {
    const answer = await ask({complete: text, at: place.at, frame: place.frame || undefined}, {quiet: true});
    if (mine !== asked)
      return undefined;
    ({words, from} = answer);
    if (words.length === 1 && words[0] === text.slice(from))
      words = [];
    words = words.slice(0, 60);
    chosen = -1;
    drawWords();
  } catch {
    close_(); // completions are a help, no answer
  }
  return undefined;
}

function takeWord() {
  const end = box_().selectionStart, rest = box_().value.slice(end);
  const done = `${box_().value.slice(0, from)}${words[chosen]} `;
  box_().value = done + rest.trimStart();
  box_().setSelectionRange(done.length, done.length);
  close_();
  box_().focus();
}

function choose(step) {
  chosen = (chosen + step + words.length) % words.length;
  drawWords();
}

function recall(step) {
  older = Math.min(Math.max(older + step, 0), past.length);
  box_().value = older === 0 ? "" : past[past.length - older];
  close_();
}

function pressed_(event) {
  const isOpen = words.length > 0;
  if (event.key === "Tab" && isOpen && !event.shiftKey) {
    event.preventDefault();
    chosen = Math.max(chosen, 0);
    takeWord();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : -1;
    if (isOpen && (step > 0 || chosen >= 0))
      choose(step);
    else
      recall(-step);
  } else if (event.key === "Escape") {
    event.stopPropagation();
    if (isOpen)
      close_();
    else
      box_().blur();
  } else if (event.key === "Enter" && isOpen && chosen >= 0) {
    event.preventDefault();
    takeWord();
  }
}

function submitted(event) {
  event.preventDefault();
  const line = box_().value.trim();
  asked += 1;
  close_();
  if (line === "")
    return;
  past.push(line);
  older = 0;
  box_().value = "";
  question(line);
}

export function startQuestion() {
  box_().addEventListener("input", complete);
  box_().addEventListener("keydown", pressed_);
  box_().addEventListener("blur", close_);
  byId("ask").addEventListener("submit", submitted);
}
