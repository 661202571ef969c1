// The candidates of one class: what is listed, which card has the focus, which are selected.

import { createCard, emptyCard, fillCard, refreshCard } from "./card.js";
import { make, $ } from "./dom.js";
import { UNDECIDED, store } from "./store.js";
import { Windowed } from "./windowed.js";

const CARD_MIN = 130, GAP = 6, BELOW_PICTURE = 66; // pixels

/** Columns and size of cards for a width. Phones get smaller cards, at least two beside each other. */
export const cardSizes = (width) => {
  const least = width < 480 ? 96 : CARD_MIN;
  const columns = Math.max(2, Math.floor((width - 2 + GAP) / (least + GAP)));
  const cardWidth = Math.floor((width - 2 - GAP * (columns - 1)) / columns);
  return { columns, width: cardWidth, height: cardWidth + BELOW_PICTURE, gap: GAP };
};

/** The width for cards: as much space on the right as on the left, where the scroll bar takes a part of it. */
export const innerWidth = (scroller, width) => {
  const left = parseFloat(getComputedStyle(scroller).paddingLeft);
  return width - left - Math.max(2, left - (scroller.offsetWidth - width));
};

class Grid extends EventTarget {
  data = null;
  rows = new Uint32Array();
  index = 0; // of the focus
  selected = new Set(); // rows
  anchor = 0; // where a range starts
  untouched = true; // nothing was done here yet but looking
  threshold = 0;
  #places = new Int32Array(); // row -> index, -1 when not listed

  constructor() {
    super();
    this.scroller = $("grid");
    this.list = make("div", { class: "canvas", role: "listbox", "aria-multiselectable": "true", "aria-label": "Candidates" });
    this.scroller.append(this.list);
    this.window = new Windowed(this.scroller, this.list, {
      measure: (width) => cardSizes(innerWidth(this.scroller, width)),
      keyOf: (index) => this.rows[index],
      indexOf: (row) => this.place(row),
      create: createCard,
      fill: (card, index) => fillCard(card, this.data, this.rows[index], this.threshold),
      place: (card, index) => this.#mark(card, index),
      empty: (card) => { emptyCard(card); card.classList.remove("focused", "selected"); card.selected = false; card.tabIndex = -1; },
    });
    store.on("rows", ({ class: c, rows }) => {
      if (c === this.data?.class) for (const row of rows) this.#refresh(this.window.element(row));
    });
    store.on("scores", ({ class: c }) => { if (c === this.data?.class) this.refreshAll(); });
    this.list.addEventListener("focusin", (event) => {
      const card = event.target.closest(".card");
      if (card && this.rows[this.index] !== card.row) this.focus(this.place(card.row), { scroll: false, keep: true });
    });
  }

  get row() { return this.rows[this.index]; }
  place(row) { return this.#places[row] ?? -1; }
  #refresh(card) { if (card) refreshCard(card, this.threshold); }
  refreshAll() { for (const card of this.window.elements()) this.#refresh(card); }
  #told() { this.dispatchEvent(new Event("moved")); }

  #mark(card, index) {
    const focused = index === this.index;
    const selected = this.selected.has(card.row);
    if (card.tabIndex !== (focused ? 0 : -1)) card.tabIndex = focused ? 0 : -1;
    card.classList.toggle("focused", focused);
    if (card.selected !== selected) {
      card.selected = selected;
      card.classList.toggle("selected", selected);
      card.setAttribute("aria-selected", String(selected));
    }
    if (card.index !== index || card.of !== this.rows.length) {
      card.index = index;
      card.of = this.rows.length;
      card.setAttribute("aria-posinset", index + 1);
      card.setAttribute("aria-setsize", this.rows.length);
    }
  }

  /** Another class, or the same with another list: starts at the top. */
  open(data, rows) {
    this.window.clear();
    this.data = data;
    this.selected.clear();
    this.#take(rows);
    this.index = 0;
    this.anchor = 0;
    this.untouched = true;
    this.window.pinned = rows[0] ?? null;
    this.scroller.scrollTop = 0;
    this.window.reset(rows.length);
    this.#told();
  }

  /** The same class in a new order: the card under the eye stays where it is, or the next one in the old order that is left. */
  reorder(rows) {
    const old = this.rows, oldIndex = this.index;
    const height = this.window.position(oldIndex).y - this.scroller.scrollTop;
    const hadFocus = this.list.contains(document.activeElement);
    this.#take(rows);
    let stays = 0;
    for (let index = oldIndex; index < old.length; index += 1) {
      if (this.place(old[index]) >= 0) { stays = this.place(old[index]); break; }
    }
    this.index = this.anchor = stays;
    for (const row of this.selected) if (this.place(row) < 0) this.selected.delete(row);
    this.window.pinned = rows[stays] ?? null;
    this.window.reset(rows.length, { animate: true, top: Math.max(0, this.window.position(stays).y - height) });
    if (hadFocus) this.#focusCard();
    this.#told();
  }

  #take(rows) {
    this.rows = rows;
    this.#places = new Int32Array(this.data.n).fill(-1);
    rows.forEach((row, index) => { this.#places[row] = index; });
    this.list.hidden = rows.length === 0;
  }

  /**
   * What lies below the screen follows the new order at once; what is on it stays. Where nothing was done yet, all but the
   * card under the eye follow.
   */
  reorderBelow(rows) {
    const [, last] = this.window.visible();
    const fixed = Math.min(this.rows.length, this.untouched ? this.index + 1 : Math.max(last, this.index) + 1);
    const taken = new Set(this.rows.subarray(0, fixed));
    const below = rows.filter((row) => !taken.has(row));
    const all = new Uint32Array(fixed + below.length);
    all.set(this.rows.subarray(0, fixed));
    all.set(below, fixed);
    this.#take(all);
    for (const row of this.selected) if (this.place(row) < 0) this.selected.delete(row);
    this.window.reset(all.length, { animate: true });
  }

  /** Moves the focus. `extend` selects everything from the anchor to there. */
  focus(index, { extend = false, scroll = true, keep = false } = {}) {
    if (this.rows.length === 0) return;
    if (index !== this.index) this.untouched = false;
    this.index = Math.max(0, Math.min(this.rows.length - 1, index));
    if (extend) this.#selectRange();
    else {
      this.anchor = this.index;
      if (!keep) this.selected.clear();
    }
    this.window.pinned = this.row;
    if (scroll) this.window.reveal(this.index);
    this.window.render();
    this.#focusCard();
    this.#told();
  }

  #focusCard() { this.window.element(this.row)?.focus({ preventScroll: true }); }
  focusHere() { this.#focusCard(); }

  #selectRange() {
    const [from, to] = [Math.min(this.anchor, this.index), Math.max(this.anchor, this.index)];
    this.selected = new Set(this.rows.subarray(from, to + 1));
  }

  select(rows) {
    this.untouched = false;
    this.selected = new Set(rows);
    this.window.render();
    this.#told();
  }

  toggle(row) {
    if (!this.selected.delete(row)) this.selected.add(row);
    this.select(this.selected);
  }

  /** What a decision is about: the selection, or else the card with the focus. */
  chosen() {
    if (this.selected.size > 0) return [...this.selected];
    return this.rows.length > 0 ? [this.row] : [];
  }

  /** After a decision: on to the next card that is undecided, or to the next one when this was being changed. */
  advance(chosen, wasUndecided) {
    let last = -1;
    for (const row of chosen) last = Math.max(last, this.place(row));
    let next = last + 1;
    if (wasUndecided) while (next < this.rows.length && this.data.decided(this.rows[next]) !== UNDECIDED) next += 1;
    this.focus(next < this.rows.length ? next : last);
  }

  /** The place an arrow key leads to. */
  target(key) {
    const { columns } = this.window;
    const page = columns * Math.max(1, Math.floor(this.window.clientHeight / this.window.pitch));
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, PageUp: -page, PageDown: page }[key];
    if (key === "Home") return 0;
    if (key === "End") return this.rows.length - 1;
    if (step === undefined) return undefined;
    const target = this.index + step;
    if (key === "ArrowUp" && target < 0) return this.index;
    return Math.max(0, Math.min(this.rows.length - 1, target));
  }
}

export const grid = new Grid();
