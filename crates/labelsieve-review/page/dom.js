// The few words in which the rest of the page speaks to the document. No markup is ever made from text.

export const $ = (id) => document.getElementById(id);

export const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

const SVG = "http://www.w3.org/2000/svg";
export const makeSvg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/** A button with a text and what it does. */
export const button = (text, action, attributes = {}) => {
  const element = make("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", action);
  return element;
};

/** Sets a text only where it differs: writing the same one again costs a layout. */
export const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };

export const count = (n) => n.toLocaleString("en");
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** Without case and accents, for searching. */
export const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
export const wordsOf = (text) => folded(text).split(/\s+/).filter(Boolean);

const live = $("live");
const TOGETHER_MS = 1500;
let saidAt = 0;
/** Tells a screen reader. What follows soon is added, or it would cut the first text off. */
export const say = (text) => {
  const now = performance.now();
  const before = now - saidAt < TOGETHER_MS ? `${live.textContent} ` : "";
  saidAt = now;
  // The same text twice in a row would not be read again.
  live.textContent = before === "" && live.textContent === text ? `${text}\u00a0` : `${before}${text}`.slice(-300);
};

export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
