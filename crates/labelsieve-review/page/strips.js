// All classes at once: one strip per class with its first candidates in the chosen order.

import { createCard, emptyCard, fillCard, refreshCard } from "./card.js";
import { button, count, make, plural, setText, $ } from "./dom.js";
import { cardSizes, innerWidth } from "./grid.js";
import { UNDECIDED, store } from "./store.js";
import { Windowed } from "./windowed.js";

const HEADING_PX = 44, GAP = 18;
const SETTLE_MS = 90;

class Strips extends EventTarget {
  shown = []; // classes
  data = null; // of the strip with the focus
  position = 0; // of the card with the focus in its strip
  selected = new Set(); // strips have no selection: decisions there are one by one
  threshold = 0;
  #lists = new Map(); // class -> rows, kept until the order changes
  #class = null; // of the strip with the focus
  #waiting = false; // for its cards, to give one of them the focus

  /** `open(class)` opens a class, `rowsFor(class, signal)` gives `{data, rows}`. */
  start({ open, rowsFor, openCard, decide }) {
    this.rowsFor = rowsFor;
    this.scroller = $("strips");
    this.canvas = make("div", { class: "canvas" });
    this.scroller.append(this.canvas);
    this.window = new Windowed(this.scroller, this.canvas, {
      measure: (width) => {
        const inner = innerWidth(this.scroller, width);
        this.sizes = cardSizes(inner);
        return { columns: 1, width: inner, height: HEADING_PX + this.sizes.height, gap: GAP };
      },
      keyOf: (index) => this.shown[index].class,
      indexOf: (c) => this.shown.findIndex((info) => info.class === c),
      create: () => this.#create(open),
      fill: (strip, index) => this.#fill(strip, this.shown[index].class),
      place: (strip) => { if (strip.cards.length > 0 && strip.columns !== this.sizes.columns) this.#cards(strip); },
      empty: (strip) => this.#empty(strip),
    });
    this.canvas.addEventListener("click", (event) => {
      const card = event.target.closest(".card");
      if (!card) return;
      const strip = card.closest(".strip");
      const quick = event.target.closest("[data-quick]");
      const again = this.#class === strip.class && this.position === strip.cards.indexOf(card);
      this.focus(strip.class, strip.cards.indexOf(card));
      if (quick) decide(quick.dataset.quick);
      else if (again) openCard();
    });
    store.on("rows", ({ class: c }) => this.#refresh(c));
    store.on("scores", ({ class: c }) => { this.#refresh(c); this.#recount(c); });
    store.on("counts", ({ class: c }) => this.#recount(c));
  }

  /** The classes, with new lists. */
  show(classes) {
    this.#lists.clear();
    this.window.clear();
    this.shown = classes;
    if (!classes.some((info) => info.class === this.#class)) { this.#class = classes[0]?.class ?? null; this.position = 0; }
    this.data = store.peek(this.#class) ?? null;
    this.window.reset(classes.length);
  }

  #create(open) {
    const name = make("button", { type: "button", class: "link" });
    const counts = make("span", { class: "muted" });
    const list = make("div", { class: "strip-cards", role: "listbox", hidden: "" });
    const wait = make("p", { class: "muted wait" });
    const strip = make("section", { class: "strip" }, make("h2", {}, name, " ", counts), list, wait);
    Object.assign(strip, { name, counts, list, wait, cards: [], spare: [] });
    name.addEventListener("click", () => open(strip.class));
    return strip;
  }

  #fill(strip, c) {
    this.#empty(strip);
    strip.class = c;
    const info = store.info(c);
    setText(strip.name, info.name);
    strip.list.setAttribute("aria-label", `First candidates of ${info.name}`);
    this.#counts(strip);
    setText(strip.wait, "Loading…");
    strip.wait.hidden = false;
    const control = strip.control = new AbortController();
    // A strip that flies past asks nothing.
    setTimeout(async () => {
      if (control.signal.aborted) return;
      try {
        const { data, rows } = await this.rowsFor(c, control.signal);
        if (control.signal.aborted) return;
        if (!this.#lists.has(c)) this.#lists.set(c, rows);
        strip.data = data;
        this.#counts(strip); // with the relevance that has come
        this.#cards(strip);
        if (c === this.#class) {
          this.data = data;
          if (this.#waiting) this.focus(c, this.position);
          else this.dispatchEvent(new Event("moved"));
        }
      } catch (error) {
        if (!control.signal.aborted) setText(strip.wait, `Not loaded: ${error.message}.`);
      }
    }, store.peek(c) ? 0 : SETTLE_MS);
  }

  #counts(strip) {
    const { n_candidates: n, n_accept, n_reject, n_unsure, mean_relevance: mean } = store.info(strip.class);
    const decided = n_accept + n_reject + n_unsure;
    const relevance = typeof mean === "number" ? `, mean relevance ${mean.toFixed(2)}` : "";
    setText(strip.counts, `${decided > 0 ? `${count(decided)} of ${count(n)} decided` : plural(n, "candidate")}${relevance}`);
  }

  #recount(c) { const strip = this.window.element(c); if (strip) this.#counts(strip); }

  /** Classes that are on the screen or near it. */
  get near() { return Array.from(this.window.elements(), (strip) => strip.class); }

  #cards(strip) {
    const rows = this.#lists.get(strip.class).subarray(0, this.sizes.columns);
    while (strip.cards.length > rows.length) { const card = strip.cards.pop(); emptyCard(card); card.remove(); strip.spare.push(card); }
    while (strip.cards.length < rows.length) { const card = strip.spare.pop() ?? createCard(); strip.cards.push(card); strip.list.append(card); }
    strip.columns = this.sizes.columns;
    strip.list.hidden = rows.length === 0;
    strip.wait.hidden = rows.length > 0;
    setText(strip.wait, rows.length > 0 ? "" : "No candidate matches the filter.");
    strip.cards.forEach((card, position) => {
      card.style.width = `${this.sizes.width}px`;
      card.style.height = `${this.sizes.height}px`;
      fillCard(card, strip.data, rows[position], this.threshold);
      card.setAttribute("aria-posinset", position + 1);
      card.setAttribute("aria-setsize", this.#lists.get(strip.class).length);
    });
    this.#mark(strip);
  }

  #mark(strip) {
    strip.cards.forEach((card, position) => {
      const focused = strip.class === this.#class && position === this.position;
      card.classList.toggle("focused", focused);
      card.tabIndex = focused || (strip.class !== this.#class && position === 0) ? 0 : -1;
    });
  }

  #empty(strip) {
    strip.control?.abort();
    for (const card of strip.cards) { emptyCard(card); card.remove(); strip.spare.push(card); }
    strip.cards = [];
    strip.data = null;
  }

  #refresh(c) {
    for (const card of this.window?.element(c)?.cards ?? []) refreshCard(card, this.threshold);
  }
  refreshAll() { for (const strip of this.window.elements()) for (const card of strip.cards) refreshCard(card, this.threshold); }

  get #strip() { return this.window.element(this.#class); }
  get row() { return this.#strip?.cards[this.position]?.row; }
  get class() { return this.#class; }
  chosen() { return this.row === undefined ? [] : [this.row]; }

  focus(c, position) {
    const before = this.#strip;
    this.#class = c;
    this.window.pinned = c;
    this.window.reveal(this.shown.findIndex((info) => info.class === c));
    const strip = this.#strip;
    this.position = Math.max(0, Math.min((strip?.cards.length || 1) - 1, position));
    this.data = strip?.data ?? null;
    if (before && before !== strip) this.#mark(before);
    const card = strip?.cards[this.position];
    this.#waiting = !card;
    if (strip) this.#mark(strip);
    card?.focus({ preventScroll: true });
    this.dispatchEvent(new Event("moved"));
  }
  focusHere() { if (this.#class !== null) this.focus(this.#class, this.position); }

  /** On to the next undecided card of the strip, then to the next strip. */
  advance() {
    const strip = this.#strip;
    for (let position = this.position + 1; position < strip.cards.length; position += 1) {
      if (strip.data.decided(strip.cards[position].row) === UNDECIDED) { this.focus(this.#class, position); return; }
    }
    this.move("ArrowDown", 0);
  }

  move(key, position = this.position) {
    const at = this.shown.findIndex((info) => info.class === this.#class);
    const line = { ArrowUp: at - 1, ArrowDown: at + 1, PageUp: at - 3, PageDown: at + 3 }[key];
    if (line !== undefined) this.focus(this.shown[Math.max(0, Math.min(this.shown.length - 1, line))].class, position);
    else if (key === "Home" || key === "End") this.focus(this.shown[key === "Home" ? 0 : this.shown.length - 1].class, 0);
    else this.focus(this.#class, this.position + (key === "ArrowRight" ? 1 : -1));
  }
}

export const strips = new Strips();
