// graph.js - the answer of `why` as a graph: each box is an instruction that made the value, and what it was made from
// hangs below it.  Copies go straight down, the inputs of a calculation side by side.

import { drawing } from "./dom.js";
import { hashOf, isBefore, positionOf } from "./place.js";
import { sourceOf } from "./rows.js";

const WIDTH = 250, HEIGHT = 58, GAP_X = 22, GAP_Y = 16;

// Each hop's parent: the copy before it, or the calculation that it is an input of.
function treeOf(hops) {
  const latest = []; // by depth
  const nodes = hops.map((hop) => ({hop, children: []}));
  let root = null;
  nodes.forEach((node, i) => {
    const {depth} = node.hop, before = nodes[i - 1];
    const isCopied = before && before.hop.depth === depth && /^from /.test(before.hop.what);
    const parent = isCopied ? before : latest[depth - 1] ?? (before && depth === 0 ? before : null);
    latest[depth] = node;
    if (parent)
      parent.children.push(node);
    else
      root ??= node;
  });
  return root;
}

// Places the leaves side by side and each parent over the middle of its children; returns the next free x.
function place_nodes(node, x, level) {
  node.y = level * (HEIGHT + GAP_Y);
  if (node.children.length === 0) {
    node.x = x;
    return x + WIDTH + GAP_X;
  }
  let next = x;
  for (const child of node.children)
    next = place_nodes(child, next, level + 1);
  node.x = (node.children[0].x + node.children.at(-1).x) / 2;
  return next;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function box({hop, x, y}) {
  const at = hop.position && !hop.trace ? positionOf(hop.position) : null;
  const lines = [
    [hop.value ?? "", hop.certainty && hop.certainty !== "exact" ? hop.certainty : "", hop.what].filter(Boolean).join("  "),
    hop.code || hop.text || "",
    [hop.function, sourceOf(hop), hop.position].filter(Boolean).join("  "),
  ];
  const content = [
    drawing("title", {}, lines.join("\n")),
    drawing("rect", {x, y, width: WIDTH, height: HEIGHT, rx: 5}),
    ...lines.map((line, i) => drawing("text", {x: x + 9, y: y + 17 + i * 16, class: ["value", "code", "where"][i]}, short(line, 36))),
  ];
  return at ? drawing("a", {href: hashOf({at, thread: isBefore(at) ? hop.thread : 0}), class: "hop"}, ...content) : drawing("g", {class: "hop"}, ...content);
}

function edges(node, into) {
  for (const child of node.children) {
    const fromX = node.x + WIDTH / 2, fromY = node.y + HEIGHT, toX = child.x + WIDTH / 2, middle = (fromY + child.y) / 2;
    into.push(drawing("path", {d: `M${fromX} ${fromY} C${fromX} ${middle} ${toX} ${middle} ${toX} ${child.y}`}));
    edges(child, into);
  }
  return into;
}

function all(node) {
  return [node, ...node.children.flatMap(all)];
}

// NULL: nothing was found.
export function graph(hops) {
  const root = treeOf(hops);
  if (!root)
    return null;
  place_nodes(root, 1, 0);
  const nodes = all(root);
  const width = Math.max(...nodes.map((node) => node.x)) + WIDTH + 1, height = Math.max(...nodes.map((node) => node.y)) + HEIGHT + 1;
  return drawing("svg", {class: "why", width, height, viewBox: `0 -1 ${width} ${height + 1}`, role: "img", "aria-label": "Where the value came from"},
    ...edges(root, []), ...nodes.map(box));
}
