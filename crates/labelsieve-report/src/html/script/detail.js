// ---- one example at a time

const dialog = document.getElementById("detail");
let shown = null; // { article, kind, at }
let opener = null; // what was clicked

const sameList = ({ article, kind }) =>
  kind === "ranked" ? matchesOf.get(article) : undefined; // undefined: all of them, one after the other
const stepFrom = (place, step) => {
  const some = sameList(place);
  const at = some ? some[some.indexOf(place.at) + step] : place.at + step;
  return at !== undefined && dataOf(place.article)[place.kind].id[at] !== undefined ? { ...place, at } : null;
};
const closestClean = (article, item) => {
  const at = dataOf(article).clean.id.indexOf(item.best);
  const best = at < 0 ? null : itemOf(article, "clean", at);
  const value = make("span", {}, `${best ? nameOf(best) : item.best}${item.similarity ? `, similarity ${item.similarity}` : ""}`);
  if (best?.picture) value.append(make("img", { src: best.picture, alt: "", class: "small" }));
  return value;
};
const factsOf = (article, item) => {
  const facts = make("dl");
  const fact = (name, value) => { if (value) facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value))); };
  fact("class", article.dataset.name);
  fact("relevance", item.relevance ?? "1 (clean example)");
  fact("probability", item.probability);
  fact("rank", item.rank && grouped(item.rank));
  fact("decision", item.decision);
  fact("truth", item.truth);
  fact("caption", item.caption);
  fact("found by", item.name);
  fact("id", item.id);
  fact("reciprocal neighbours", item.neighbours?.toString());
  if (item.best !== undefined) fact("closest clean example", closestClean(article, item));
  if (item.address) fact("file", original(item, "open the original"));
  return facts;
};
const show = (place) => {
  shown = place;
  const item = itemOf(place.article, place.kind, place.at);
  const step = (name, by) => {
    const button = make("button", { type: "button" }, name);
    button.disabled = stepFrom(place, by) === null;
    button.addEventListener("click", () => { show(stepFrom(shown, by)); focusControl(name); });
    return button;
  };
  const image = picture(item);
  if (item.picture !== undefined) image.src = item.picture;
  if (item.picture !== undefined && item.address) image.alt = "open the original";
  const large = item.address ? original(item, image, { class: "large" }) : make("span", { class: "large" }, image);
  const close = make("button", { type: "button" }, "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(
    make("h2", { id: "detail-h" }, nameOf(item)),
    make("div", { class: "detail" }, large, factsOf(place.article, item)),
    make("p", { class: "controls" }, step("Previous", -1), step("Next", 1), close),
  );
  if (!dialog.open) dialog.showModal();
};
// Each step makes new buttons: the one that was pressed keeps the focus.
const focusControl = (name) => {
  const buttons = [...dialog.querySelectorAll(".controls button:enabled")];
  (buttons.find((button) => button.textContent === name) ?? buttons.at(-1)).focus();
};
classList?.addEventListener("click", (event) => {
  const button = event.target.closest(".item");
  if (!button) return;
  opener = button;
  show(placeOf.get(button));
});
dialog?.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const next = by && stepFrom(shown, by);
  if (next) { event.preventDefault(); show(next); focusControl("Close"); }
});
dialog?.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog?.addEventListener("close", () => {
  const button = buttonsOf.get(shown.article)[shown.kind].get(shown.at);
  focusOn(button?.isConnected ? button : opener); // rows that were only passed through may not be there
});
