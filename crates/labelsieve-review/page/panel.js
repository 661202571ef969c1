// The side with the scores: threshold, λ, curve, and how to keep the result.

import { api } from "./api.js";
import { drawCurve } from "./curve.js";
import { complain } from "./decide.js";
import { count, make, say, setText, $ } from "./dom.js";
import { kept } from "./order.js";
import { NO_FEATURES, store } from "./store.js";

const STEPS = 1000; // of the slider for λ
let points = [];
let touched = false; // nothing is made pale before the threshold was moved

// ---- threshold

/** `data` is the class that is looked at, if any. */
export const showKept = (data) => {
  const threshold = Number($("keep").value);
  setText($("keep-value"), threshold.toFixed(2));
  if (!data) { setText($("kept"), "Open a class to see how many of its candidates are kept."); return; }
  const n = kept(data.relevance, threshold);
  setText($("kept"), `Keeps ${count(n)} of ${count(data.n)} candidates of this class.${touched ? " Those below it are paler." : ""}`);
};

// ---- λ: the slider is logarithmic

const toSlider = (lambda) => {
  const [low, high] = store.session.lambda_range;
  return Math.round((STEPS * Math.log(lambda / low)) / Math.log(high / low));
};
const fromSlider = (value) => {
  const [low, high] = store.session.lambda_range;
  return Number((low * (high / low) ** (value / STEPS)).toPrecision(3));
};
const showLambda = () => {
  const { lambda, default_lambda: usual, lambda_range: range, can_score } = store.session;
  $("lambda-section").hidden = !range || !can_score;
  if (!range) return;
  const shown = lambda ?? usual;
  $("lambda-default").hidden = lambda === null;
  if (typeof shown === "number") $("lambda").value = toSlider(shown);
  const text = typeof shown === "number" ? Number(shown.toPrecision(3)).toString() : "";
  setText($("lambda-value"), lambda === null ? `${text} (default)`.trim() : text);
  $("lambda").setAttribute("aria-valuetext", $("lambda-value").textContent);
};
const sendLambda = async (lambda) => {
  try {
    Object.assign(store.session, await api.lambda(lambda)); // an event says it as well, and starts the rest
    say("λ changed; scoring again.");
  } catch (error) {
    complain(`λ was not changed: ${error.message}. `);
  }
  showSettings();
};

// ---- curve

const draw = () => {
  if (points.length === 0 && !store.session.can_score) $("curve").replaceChildren(make("p", { class: "muted" }, `${NO_FEATURES}, so there is nothing to measure.`));
  else drawCurve($("curve"), points);
};
export const showCurve = (curve) => {
  ({ points } = curve);
  draw();
};
export const loadCurve = async () => showCurve(await api.curve());

// ---- keeping

const showCommand = () => {
  const { command, output } = store.session;
  setText($("where"), `Every decision is in ${output} as soon as the page says so.`);
  $("command-section").hidden = !command;
  setText($("command"), command ?? "");
};
/** λ, and the command that has it. */
export const showSettings = () => { showLambda(); showCommand(); };
const copyCommand = async () => {
  try {
    await navigator.clipboard.writeText(store.session.command);
    say("Copied.");
    setText($("copy"), "Copied");
    setTimeout(() => setText($("copy"), "Copy the command"), 2000);
  } catch {
    getSelection().selectAllChildren($("command")); // no clipboard here: ready for Ctrl+C
  }
};

/** Calls `changed()` when the threshold moves. */
export const startPanel = (changed) => {
  $("keep").addEventListener("input", () => { touched = true; changed(); });
  $("lambda").addEventListener("input", (event) => {
    const text = fromSlider(Number(event.target.value)).toString();
    setText($("lambda-value"), text);
    event.target.setAttribute("aria-valuetext", text);
  });
  $("lambda").addEventListener("change", (event) => sendLambda(fromSlider(Number(event.target.value))));
  $("lambda-default").addEventListener("click", () => sendLambda(null));
  $("copy").addEventListener("click", copyCommand);
  draw();
  showSettings();
};
