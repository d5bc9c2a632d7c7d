// dom.js - makes elements.  Text is always text: nothing that a program wrote becomes markup.

export const byId = (id) => document.getElementById(id);

// element("a", {href: "#1", class: "at"}, "text", other): properties with "on" are listeners, null children are left out.
export function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {}))
    set(made, name, value);
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

function set(made, name, value) {
  if (value === null || value === undefined || value === false)
    return;
  if (name.startsWith("on"))
    made.addEventListener(name.slice(2), value);
  else
    made.setAttribute(name, value === true ? "" : String(value));
}

const SVG = "http://www.w3.org/2000/svg";

export function drawing(tag, properties, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties || {}))
    set(made, name, value);
  made.append(...children);
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

// 12345678 -> "12 345 678", with thin spaces.
export function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

export const baseName = (path) => (path || "").replace(/.*\//, "");
