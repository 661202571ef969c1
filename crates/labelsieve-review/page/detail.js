// One candidate in full: its picture, why it has this relevance, what is near it, what was decided.

import { api } from "./api.js";
import { MARKS } from "./card.js";
import { button, count, make, plural, $ } from "./dom.js";
import { cleanName, cleanPicture, fullPicture, smallPicture } from "./pictures.js";
import { DECIDED, REJECT, UNSURE, store } from "./store.js";

const dialog = $("detail");
const MAX_GROUP = 24;
const DONE = { accept: "accepted", reject: "rejected", unsure: "marked unsure", undecided: "cleared" };

/** Decisions from elsewhere may have no moment, or one that only its writer can read. */
const momentOf = (at) => {
  const moment = new Date(at);
  return Number.isNaN(moment.getTime()) ? at : make("time", { datetime: at }, moment.toLocaleString());
};

class Detail {
  data = null;
  row = -1;
  #asked = null; // AbortController of the question under way

  /** `on.decide(name)`, `on.step(±1)`, `on.similar(row)`, `on.closed()`. */
  start(on) {
    this.on = on;
    dialog.addEventListener("close", () => {
      if (dialog.open) return; // a late event: the next picture is open already
      this.#asked?.abort();
      this.row = -1;
      on.closed();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    const again = ({ class: c, rows }) => {
      if (dialog.open && c === this.data.class && (!rows || rows.includes(this.row))) this.#ask();
    };
    store.on("rows", (told) => { if (dialog.open && told.class === this.data.class) this.#showDecision(); again(told); });
    store.on("scores", again);
  }

  get isOpen() { return dialog.open; }
  close() { dialog.close(); }

  show(data, row) {
    const moved = this.data !== data || this.row !== row;
    this.data = data;
    this.row = row;
    if (moved) this.#build();
    if (!dialog.open) dialog.showModal();
    this.#ask();
  }

  #build() {
    const { data, row, on } = this;
    this.decided = make("p", { class: "decided" });
    this.facts = make("dl", { class: "facts" });
    this.more = make("div", { class: "more" });
    const act = (text, name, key, look = "") => button(text, () => on.decide(name), { class: look, "aria-keyshortcuts": key, title: `${text} (${key})`, "data-name": name });
    this.buttons = make("p", { class: "decide" }, act("✓ Accept", "accept", "A", "yes"), act("✗ Reject", "reject", "R", "no"),
      act("? Unsure", "unsure", "U"), act("Clear", "undecided", "Backspace"));
    this.#fact("relevance", data.relevance[row].toFixed(3));
    const original = make("a", { href: `pictures/${data.example[row]}`, target: "_blank", rel: "noopener noreferrer" }, "Original");
    const body = make("div", { class: "detail", tabindex: "-1", autofocus: "" },
      make("div", { class: "left" }, fullPicture(data.example[row], data.text(row), () => original.remove()), this.decided, this.buttons),
      make("div", { class: "right" }, this.facts, this.more));
    const held = dialog.contains(document.activeElement) ? document.activeElement.textContent : null;
    dialog.replaceChildren(
      make("h2", { id: "detail-h" }, data.text(row)),
      body,
      make("p", { class: "controls" },
        original,
        store.session.can_score ? button("More like this", () => on.similar(row), { title: "Order by similarity to this picture (S)", "aria-keyshortcuts": "S" }) : "",
        button("Previous", () => on.step(-1), { "aria-keyshortcuts": "ArrowLeft" }),
        button("Next", () => on.step(1), { "aria-keyshortcuts": "ArrowRight" }),
        button("Close", () => dialog.close())));
    this.#showDecision();
    // Keep the focus on the pressed button for the next picture.
    if (held !== null) ([...dialog.querySelectorAll("button")].find((other) => other.textContent === held) ?? body).focus({ preventScroll: true });
  }

  #showDecision() {
    const code = this.data.decided(this.row);
    const along = this.data.duplicates(this.row);
    const state = this.data.pending.has(this.row) ? `${DECIDED[code]}, saving…` : DECIDED[code];
    this.decided.replaceChildren();
    if (code) this.decided.append(make("span", { class: `mark${code === REJECT ? " no" : code === UNSURE ? " unsure" : ""}`, "aria-hidden": "true", "data-text": MARKS[code] }), " ");
    this.decided.append(along > 0 ? `${state}, with ${plural(along, "near-duplicate")}` : state);
    for (const control of this.buttons.children) {
      control.setAttribute("aria-pressed", String(control.dataset.name === ["undecided", "accept", "reject", "unsure"][code] && code > 0));
    }
  }

  #fact(name, value) {
    if (value === undefined || value === null || value === "") return;
    this.facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  }

  async #ask() {
    this.#asked?.abort();
    const asked = this.#asked = new AbortController();
    try {
      const answer = await api.row(this.data.class, this.row, asked.signal);
      if (this.#asked === asked) this.#tell(answer);
    } catch (error) {
      if (error.name !== "AbortError") this.more.replaceChildren(make("p", { class: "notice" }, `No details: ${error.message}.`));
    }
  }

  #tell(answer) {
    this.facts.replaceChildren();
    this.#fact("relevance", `${answer.relevance.toFixed(3)}, rank ${count(answer.rank)} of ${count(this.data.n)}`);
    if (typeof answer.probability === "number") this.#fact("probability", answer.probability.toFixed(2));
    this.#fact("caption", answer.caption);
    this.#fact("matched name", answer.matched_name);
    this.#fact("id", answer.id);
    const parts = [this.#reasons(answer)];
    if (answer.best_clean) parts.push(this.#closest(answer.best_clean));
    if (answer.neighbours.length > 0) parts.push(this.#neighbours(answer.neighbours));
    if (answer.group.length > 1) parts.push(this.#group(answer.group));
    parts.push(this.#history(answer.history));
    // Buttons of neighbours are replaced: keep the focus inside the dialog.
    const hadFocus = this.more.contains(document.activeElement);
    this.more.replaceChildren(...parts);
    if (hadFocus) dialog.querySelector(".detail").focus();
  }

  #reasons({ best_clean: best, reciprocal_neighbours: n, neighbours, relevance }) {
    const reasons = [];
    if (best) reasons.push(`Its similarity to the closest clean example is ${best.similarity.toFixed(2)}.`);
    if (n !== null && n !== undefined) reasons.push(n === 0 ? "It has no reciprocal neighbours: nothing in the pool supports it." : `It has ${plural(n, "reciprocal neighbour")}.`);
    const clean = neighbours.filter((other) => other.is_clean).length;
    if (clean > 0) reasons.push(`${plural(clean, "clean example is", "clean examples are")} among its nearest.`);
    const others = neighbours.filter((other) => !other.is_clean);
    if (others.length > 0) {
      const mean = others.reduce((sum, other) => sum + other.relevance, 0) / others.length;
      reasons.push(`The relevance of the neighbours shown is ${mean.toFixed(2)} on average; its own is ${relevance.toFixed(2)}.`);
      const accepted = others.filter((other) => other.decision === 1).length, rejected = others.filter((other) => other.decision === 2).length;
      if (accepted + rejected > 0) reasons.push(`Of them, ${accepted} ${accepted === 1 ? "was" : "were"} accepted and ${rejected} rejected.`);
    }
    return make("section", {}, make("h3", {}, "Reasons"), make("ul", {}, ...reasons.map((text) => make("li", {}, text))));
  }

  #closest(clean) {
    return make("section", {}, make("h3", {}, "Nearest clean example"),
      make("p", { class: "beside" }, cleanPicture(clean), make("span", {}, `${cleanName(clean)}, similarity ${clean.similarity.toFixed(2)}`)));
  }

  #neighbours(neighbours) {
    const items = neighbours.map((other) => {
      const state = other.is_clean ? "clean example" : `relevance ${other.relevance.toFixed(2)}${other.decision ? `, ${DECIDED[other.decision]}` : ""}`;
      const label = `${other.is_clean ? cleanName(other) : other.id}: similarity ${other.similarity.toFixed(2)}, ${state}`;
      const text = make("span", {}, `${other.is_clean ? "clean" : `${other.relevance.toFixed(2)} ${MARKS[other.decision]}`}`);
      const plain = other.row === null || other.row === undefined;
      const item = plain ? make("span", { class: "near", title: label, role: "img", "aria-label": label }, other.is_clean ? cleanPicture(other) : smallPicture(other.example), text)
        : button(smallPicture(other.example), () => this.on.go(other.row), { class: "near", title: label, "aria-label": label });
      if (!plain) item.append(text);
      return make("li", {}, item);
    });
    return make("section", {}, make("h3", {}, "Neighbours in the graph"), make("ul", { class: "nears", role: "list" }, ...items));
  }

  #group(rows) {
    const items = rows.slice(0, MAX_GROUP).map((row) => make("li", {},
      button(smallPicture(this.data.example[row]), () => this.on.go(row), { class: "near", "aria-label": this.data.text(row), ...(row === this.row ? { "aria-current": "true" } : {}) })));
    const rest = rows.length - items.length;
    return make("section", {}, make("h3", {}, `${plural(rows.length, "near-duplicate")}, decided together`),
      make("ul", { class: "nears", role: "list" }, ...items), rest > 0 ? make("p", { class: "muted" }, `and ${count(rest)} more`) : "");
  }

  #history(history) {
    const lines = history.map(({ decision, by, at }) => {
      const line = make("li", {}, `${DONE[decision] ?? decision}${by ? ` by ${by}` : ""}`);
      if (at) line.append(", ", momentOf(at));
      return line;
    });
    return make("section", {}, make("h3", {}, "History"), lines.length > 0 ? make("ol", { class: "history" }, ...lines) : make("p", { class: "muted" }, "No decision yet."));
  }
}

export const detail = new Detail();
