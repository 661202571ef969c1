// Order and filters: reads them from the page and writes them back.

import { make, setText, $ } from "./dom.js";
import { isFiltered, plainView } from "./order.js";

export const view = plainView();

const show = () => {
  $("order").value = view.order;
  $("only").value = view.only;
  $("only-name").value = view.name;
  $("caption").value = view.caption;
  $("from").value = view.from;
  $("to").value = view.to;
  $("once").checked = view.once;
  setText($("range-text"), `${view.from.toFixed(2)} to ${view.to.toFixed(2)}`);
  $("reset").hidden = !isFiltered(view);
  $("open-tools").classList.toggle("filtered", isFiltered(view));
  setText($("open-tools"), isFiltered(view) ? "Filtered" : "Filter");
};

/** Names are offered where a class was searched by more than one. */
export const offerNames = (names) => {
  const select = $("only-name");
  select.replaceChildren(make("option", { value: "any" }, "any"), ...names.map((name, index) => make("option", { value: String(index) }, name)));
  $("name-field").hidden = names.length < 2;
  view.name = "any";
  select.value = "any";
};

export const orderBySimilarity = (row, text) => {
  const option = $("order").querySelector("[value=similar]");
  option.disabled = false;
  setText(option, `most similar to “${text.slice(0, 40)}”`);
  view.order = "similar";
  view.similar = row;
  show();
};
/** A picture of another class is no measure here. */
export const forgetSimilar = () => {
  const option = $("order").querySelector("[value=similar]");
  option.disabled = true;
  setText(option, "most similar to…");
  if (view.order === "similar") view.order = "next";
  view.similar = null;
  show();
};

export const resetFilters = () => {
  Object.assign(view, { ...plainView(), order: view.order, similar: view.similar, once: view.once });
  show();
};

const SETTLE_MS = 150;

/** Calls `changed({fromTop})` when another list is chosen. */
export const startControls = (changed) => {
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(() => changed(), SETTLE_MS); };
  const take = (id, key, event, action) => $(id).addEventListener(event, () => { view[key] = $(id).value; show(); action(); });
  take("order", "order", "change", () => changed({ fromTop: true }));
  take("only", "only", "change", () => changed());
  take("only-name", "name", "change", () => changed());
  take("caption", "caption", "input", later);
  const ends = (moved) => {
    let [from, to] = [Number($("from").value), Number($("to").value)];
    if (from > to) { if (moved === "from") to = from; else from = to; } // one end pushes the other
    Object.assign(view, { from, to });
    show();
    later();
  };
  $("from").addEventListener("input", () => ends("from"));
  $("to").addEventListener("input", () => ends("to"));
  $("once").addEventListener("change", () => { view.once = $("once").checked; changed(); });
  $("reset").addEventListener("click", () => { resetFilters(); changed(); });
  show();
};
