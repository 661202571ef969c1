// Which candidates are shown, in which order. Pure functions, quick enough for 100,000 candidates between two frames or so.

import { UNDECIDED } from "./store.js";
import { wordsOf } from "./dom.js";

// A sorting key holds relevance and row, which together fill the 53 bits that a number has: relevance is at most 1, whose bits
// are below 2 ** 30.
const ROWS = 2 ** 23;
const ONE = 0x3f800000;
const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);
// The bits of non-negative numbers are in the same order as the numbers, and native sorting of plain numbers is several
// times as fast as sorting with a comparison.
const bitsOf = (value) => { float[0] = Math.min(1, Math.max(0, value)); return bits[0]; };

/** All rows by relevance; equal ones as in the file. */
export const byRelevance = (relevance, descending) => {
  const keys = new Float64Array(relevance.length);
  for (let row = 0; row < keys.length; row += 1) {
    const key = bitsOf(relevance[row]);
    keys[row] = (descending ? ONE - key : key) * ROWS + row;
  }
  return Uint32Array.from(keys.sort(), (key) => key % ROWS);
};

/** What to look at next, then the rest by relevance: first what is undecided, then what is decided. */
const nextFirst = (data, next) => {
  const taken = new Uint8Array(data.n);
  for (const row of next) taken[row] = 1;
  const rest = byRelevance(data.relevance, true).filter((row) => !taken[row]);
  const undecided = rest.filter((row) => data.decided(row) === UNDECIDED);
  const decided = rest.filter((row) => data.decided(row) !== UNDECIDED);
  return concatenated(Uint32Array.from(next), undecided, decided);
};
const concatenated = (...parts) => {
  const all = new Uint32Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) { all.set(part, at); at += part.length; }
  return all;
};

/** Settings of order and filter, as the page starts with them. */
export const plainView = () => ({ order: "next", similar: null, only: "any", name: "any", caption: "", from: 0, to: 1, once: true });
export const isFiltered = (view) => view.only !== "any" || view.name !== "any" || view.caption !== "" || view.from > 0 || view.to < 1;

/** The rows of a class to show. `next` and `similar` are rows that the server has ordered. */
export const rowsOf = (data, view, next, similar) => {
  const ordered = view.order === "high" || view.order === "low" ? byRelevance(data.relevance, view.order === "high")
    : view.order === "similar" && similar ? similar : nextFirst(data, next);
  const only = view.only === "any" ? -1 : Number(view.only);
  const name = view.name === "any" ? -2 : Number(view.name);
  // Relevance has single precision: 0.7 there is a little less than 0.7 here.
  const from = Math.fround(view.from), to = Math.fround(view.to);
  const words = data.captions ? wordsOf(view.caption) : [];
  const seen = view.once ? new Uint8Array(data.n) : null;
  const shown = new Uint32Array(ordered.length);
  let n = 0;
  for (const row of ordered) {
    if (only >= 0 && data.decided(row) !== only) continue;
    if (name !== -2 && data.name[row] !== name) continue;
    if (data.relevance[row] < from || data.relevance[row] > to) continue;
    if (!words.every((word) => data.captions[row].includes(word))) continue;
    if (seen) {
      if (seen[data.group[row]]) continue;
      seen[data.group[row]] = 1;
    }
    shown[n] = row;
    n += 1;
  }
  return shown.subarray(0, n);
};

/** How many candidates a threshold keeps. */
export const kept = (relevance, threshold) => {
  const least = Math.fround(threshold);
  let n = 0;
  for (const value of relevance) if (value >= least) n += 1;
  return n;
};
