// Left-out accuracy over the number of decisions: shows when more decisions stop helping.

import { count, make, makeSvg, percent, plural } from "./dom.js";

const WIDTH = 280, HEIGHT = 150, LEFT = 44, RIGHT = 10, TOP = 10, BOTTOM = 26;

/** A round step that divides `span` into a few parts. */
const stepOf = (span, parts) => {
  const rough = span / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= 0.999 * rough); // 0.02 is a little less than 0.1 / 5 here
};

const summary = (points) => {
  const first = points[0], last = points[points.length - 1];
  const on = `on ${plural(last.n_left_out, "example")}`;
  if (points.length === 1) return `Left-out accuracy ${percent(first.accuracy)} after ${plural(first.n_decisions, "decision")}, ${on}.`;
  const [before, after] = [plural(first.n_decisions, "decision"), plural(last.n_decisions, "decision")];
  const change = (100 * Math.abs(last.accuracy - first.accuracy)).toFixed(1);
  if (change === "0.0") return `Left-out accuracy is ${percent(last.accuracy)} after ${after}, as it was after ${before}, ${on}.`;
  return `Left-out accuracy went from ${percent(first.accuracy)} after ${before} to ${percent(last.accuracy)} after ${after}: `
    + `${last.accuracy > first.accuracy ? "up" : "down"} ${change} points, ${on}.`;
};

export const drawCurve = (target, points) => {
  if (points.length === 0) {
    target.replaceChildren(make("p", { class: "muted" }, "Drawn once it has been measured: how often clean and accepted examples are recognised when each is left out in turn."));
    return;
  }
  const nMax = Math.max(1, ...points.map((point) => point.n_decisions));
  const values = points.map((point) => point.accuracy);
  const middle = (Math.min(...values) + Math.max(...values)) / 2;
  const half = Math.max(0.05, (Math.max(...values) - Math.min(...values)) * 0.6);
  const low = Math.max(0, middle - half), high = Math.min(1, middle + half);
  const x = (n) => LEFT + (n / nMax) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);

  const text = summary(points);
  const svg = makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "fig", role: "img", "aria-label": text });
  const step = stepOf(high - low, 5);
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step) {
    svg.append(makeSvg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    svg.append(makeSvg("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, `${(100 * value).toFixed(step < 0.01 ? 1 : 0)} %`));
  }
  const across = Math.max(1, stepOf(nMax, 4));
  for (let n = 0; n <= nMax; n += across) {
    svg.append(makeSvg("text", { class: "tick", x: x(n), y: HEIGHT - 9, "text-anchor": "middle" }, count(n)));
  }
  svg.append(makeSvg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  svg.append(makeSvg("polyline", { class: "line s0", points: points.map((point) => `${x(point.n_decisions)},${y(point.accuracy)}`).join(" ") }));
  const last = points[points.length - 1];
  svg.append(makeSvg("circle", { class: "fill s0", cx: x(last.n_decisions), cy: y(last.accuracy), r: 4 }));

  const table = make("table", {},
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "decisions"), make("th", { scope: "col" }, "accuracy"))),
    make("tbody", {}, ...points.map((point) => make("tr", {}, make("td", {}, count(point.n_decisions)), make("td", {}, percent(point.accuracy))))));
  const wasOpen = target.querySelector("details")?.open;
  const details = make("details", {}, make("summary", {}, "As a table"), make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Left-out accuracy as a table" }, table));
  details.open = Boolean(wasOpen);
  target.replaceChildren(svg, make("p", { class: "muted" }, text), details);
};
