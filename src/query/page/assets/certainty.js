// certainty.js - how well a value of a dump's past is known, as a mark that is seen, and why.

import { element } from "./dom.js";
import { hashOf, positionOf } from "./place.js";

const MEANINGS = {
  exact: "It follows from what the dump has.",
  inferred: "It rests on an assumption.",
  unknown: "It does not follow from what the dump has.",
};

// "exact", "inferred", "unknown" as a word of its own; a value without certainty has no mark.
export function certaintyMark(certainty) {
  return MEANINGS[certainty] ? element("span", {class: `mark ${certainty}`, title: MEANINGS[certainty]}, certainty) : null;
}

// The text with its positions (-12+3) as links.
export function linkedText(text, thread) {
  return String(text).split(/(-\d+(?:\+\d+)?)(?= |,|$)/).map((part, i) => {
    const at = i % 2 === 1 ? positionOf(part) : null;
    return at ? element("a", {href: hashOf({at, thread}), class: "at"}, part) : part;
  });
}

function oneValue(text, certainty) {
  return [element("span", {class: `value ${certainty}`}, text ?? "?"), certaintyMark(certainty)];
}

// A value of `path --values`: before its row, after it if that is something else, and what that rests on.
export function pastValue({name, value, certainty, after, after_certainty: afterCertainty, why}, thread, buttons = null) {
  const hasBefore = certainty !== undefined, hasChanged = afterCertainty !== undefined && (!hasBefore || value !== after);
  return element("div", {class: "held", "data-name": name},
    element("span", {class: "name"}, name), " = ",
    hasBefore ? oneValue(value, certainty) : null,
    hasChanged ? [" → ", oneValue(after, afterCertainty)] : null,
    buttons,
    why && (certainty === "inferred" || (hasChanged && afterCertainty === "inferred")) ? element("div", {class: "because"}, linkedText(why, thread)) : null);
}
