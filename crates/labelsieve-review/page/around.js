// The texts around the pictures: what is open, how much of it is shown and decided, what a decision would be about.

import { classList } from "./classlist.js";
import { view } from "./controls.js";
import { button, count, make, plural, setText, $ } from "./dom.js";
import { grid } from "./grid.js";
import { isFiltered } from "./order.js";
import { showKept } from "./panel.js";
import { cleanName, cleanPicture } from "./pictures.js";
import { active, place } from "./place.js";
import { store } from "./store.js";
import { strips } from "./strips.js";

const MAX_CLEAN = 6;
let on = {}; // what the buttons in notices do

/** `on.nextClass()`, `on.resetFilters()`. */
export const startAround = (actions) => {
  on = actions;
  for (const list of [grid, strips]) list.addEventListener("moved", showChosen);
};

export const showAround = () => {
  const { data } = grid;
  $("grid").hidden = place.allAtOnce || grid.rows.length === 0;
  $("strips").hidden = !place.allAtOnce;
  $("all-classes").setAttribute("aria-pressed", String(place.allAtOnce));
  showKept(place.allAtOnce ? null : data);
  showChosen();
  for (const id of ["done", "empty"]) $(id).hidden = true;
  if (place.allAtOnce) {
    setText($("heading"), "All classes");
    setText($("about"), "Click a name to open its class.");
    setText($("why"), "");
    $("shown").title = "";
    setText($("shown"), plural(strips.shown.length, "class", "classes"));
    document.title = "All classes · Labelsieve";
    $("refresh").hidden = false;
    return;
  }
  if (!data) return;
  const info = store.info(place.class);
  const { total, decided } = store.counted(place.class);
  setText($("heading"), info.name);
  const decisions = [[info.n_accept, "accepted"], [info.n_reject, "rejected"], [info.n_unsure, "unsure"]].filter(([n]) => n > 0);
  setText($("about"), `${plural(total, "candidate")}: ${decisions.map(([n, what]) => `${count(n)} ${what}`).join(", ") || "none decided yet"}`);
  $("about").title = $("about").textContent;
  document.title = `${info.name} · Labelsieve`;
  const hidden = grid.rows.length < data.n;
  setText($("shown"), hidden ? `${count(grid.rows.length)} of ${count(data.n)} shown` : plural(data.n, "candidate"));
  setText($("why"), hidden && !isFiltered(view) ? "near-duplicates once" : "");
  $("shown").title = $("why").textContent; // where there is no room for it
  showEmpty(data, total, decided);
};

/** A few clean examples beside the name of the class: they say what it means. */
export const showClean = (data) => {
  const shown = (data?.clean ?? []).slice(0, MAX_CLEAN);
  $("clean").replaceChildren(...shown.map((clean) => make("li", { title: `clean example: ${cleanName(clean)}` }, cleanPicture(clean, cleanName(clean)))));
  $("clean").dataset.n = count(data?.clean.length ?? 0);
  $("clean").hidden = shown.length === 0;
};

const showEmpty = (data, total, decided) => {
  const left = classList.after(place.class) !== undefined;
  const nextClass = () => button("Next class (N)", on.nextClass);
  if (total > 0 && decided >= total) {
    $("done").replaceChildren("All candidates of this class are decided. ", left ? nextClass() : "So are those of every other class: run the command under “Keep the result”.");
    $("done").hidden = false;
  }
  if (grid.rows.length > 0) return;
  $("empty").hidden = false;
  if (data.n === 0) $("empty").replaceChildren("This class has no candidates. ", left ? nextClass() : "");
  else $("empty").replaceChildren("No candidate matches the filter. ", button("Reset filters", on.resetFilters));
};

const showChosen = () => {
  const n = active().selected.size;
  const { data } = active();
  const text = n > 0 ? `${plural(n, "picture")} selected` : active().row !== undefined && data ? data.text(active().row) : "";
  setText($("chosen"), text);
  $("unselect").hidden = n === 0;
  $("open-detail").hidden = n > 0;
  for (const control of $("actions").querySelectorAll("[data-decide], #open-detail")) control.disabled = text === "";
};
