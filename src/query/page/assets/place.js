// place.js - where the user is: position, thread, frame.  It is in the address, so the browser's history is the history
// of positions, and a link to a place is the page's address.

import { recorded } from "./ask.js";

const listeners = [];
export let place = {at: [0, 0], thread: 0, frame: 0};

export function onPlace(listener) {
  listeners.push(listener);
}

export const positionText = ([time, offset]) => (offset === 0 ? String(time) : `${time}+${offset}`);

// "12", "12+3" -> [12, 3]; of a dump "-12+3" -> [-12, 3]; null: it is no position
export function positionOf(text) {
  const found = /^\s*(\d{1,15}|-[1-9]\d{0,8})(?:\+(\d{1,9}))?\s*$/.exec(String(text));
  return found ? [Number(found[1]), Number(found[2] || 0)] : null;
}

// Is it one before the end of a dump?
export const isBefore = ([time]) => time < 0;

export const eventPosition = (object) => (Number.isInteger(object.time) ? [object.time, object.offset || 0] : null);

export const samePosition = (a, b) => a[0] === b[0] && a[1] === b[1];

export function hashOf({at, thread = 0, frame = 0}) {
  return `#${positionText(at)}${thread ? `,thread=${thread}` : ""}${frame ? `,frame=${frame}` : ""}`;
}

function placeOf(hash) {
  const [at, ...others] = hash.slice(1).split(",");
  const read = positionOf(at);
  if (!read)
    return null;
  const found = {at: read, thread: 0, frame: 0};
  for (const other of others) {
    const [key, value] = other.split("=");
    if ((key === "thread" || key === "frame") && /^\d{1,9}$/.test(value || ""))
      found[key] = Number(value);
  }
  return found;
}

function take() {
  const found = recorded ? {at: recorded.begin.at, thread: recorded.begin.thread, frame: recorded.begin.frame} : placeOf(location.hash);
  if (!found)
    return;
  place = found;
  for (const listener of listeners)
    listener(place);
}

// A file has one place.  A new entry in the history; the same place is none.
export function go(where) {
  if (!recorded)
    location.hash = hashOf({at: place.at, thread: place.thread, frame: 0, ...where});
}

export function startPlaces(first) {
  addEventListener("hashchange", take);
  if (!placeOf(location.hash))
    history.replaceState(null, "", hashOf(first));
  take();
}
