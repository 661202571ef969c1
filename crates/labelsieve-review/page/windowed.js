// Shows a few of very many items of equal size: only those in view are in the document, and their elements are used again.
// Reads come before writes, and every position is computed, never measured: scrolling causes no layout beyond its own.

import { reducedMotion } from "./dom.js";

const OVERSCAN = 1.0; // screens above and below
const LEAP = 1.5; // screens between two frames: a dragged scroll bar needs only what is in view
const SETTLE_MS = 120;
const MOVE_MS = 260;

export class Windowed {
  #elements = new Map(); // key -> element
  #spare = [];
  #frame = 0;
  #top = 0; // when last drawn
  #timer = 0;

  /**
   * `canvas` is the element within `scroller` that holds the items. `measure(width)` gives `{columns, width, height, gap}`;
   * `keyOf(index)` names an item, `create()` makes an element, `fill(element, index)` shows an item in it for the first time,
   * `place(element, index)` is told whenever its index may have changed, `empty(element)` when it leaves without being used again
   * at once: `fill` may be called for an element that still shows something else.
   */
  constructor(scroller, canvas, actions) {
    Object.assign(this, { scroller, canvas, actions, count: 0, columns: 1, itemWidth: 0, itemHeight: 1, gap: 0, pinned: null });
    scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(scroller);
  }

  schedule() {
    this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.render(); });
  }

  resize() {
    const { clientWidth, clientHeight } = this.scroller;
    if (clientWidth === 0) return; // hidden
    const first = this.columns > 0 ? Math.floor(this.scroller.scrollTop / this.pitch) * this.columns : 0;
    const changed = clientWidth !== this.clientWidth;
    this.clientWidth = clientWidth;
    this.clientHeight = clientHeight;
    const { columns, width, height, gap } = this.actions.measure(clientWidth);
    Object.assign(this, { columns, itemWidth: width, itemHeight: height, gap });
    this.#sizeCanvas();
    if (changed && first > 0) this.scroller.scrollTop = Math.floor(first / columns) * this.pitch;
    this.render();
  }

  get pitch() { return this.itemHeight + this.gap; }
  #sizeCanvas() { this.canvas.style.height = `${Math.max(0, Math.ceil(this.count / this.columns) * this.pitch)}px`; }

  /** The items are others now, scrolled to `top`. `animate`: those that stay move to their new places. */
  reset(count, { animate = false, top = this.scroller.scrollTop } = {}) {
    const before = this.scroller.scrollTop;
    this.count = count;
    this.#sizeCanvas();
    if (top !== before) this.scroller.scrollTop = top;
    this.render(animate && !reducedMotion.matches, this.scroller.scrollTop - before);
  }

  /** Shows everything again, even under the same keys. */
  clear() {
    for (const [key, element] of this.#elements) this.#release(key, element);
    this.#hideSpare();
  }

  position(index) {
    return {
      x: (index % this.columns) * (this.itemWidth + this.gap),
      y: Math.floor(index / this.columns) * this.pitch,
    };
  }

  element(key) { return this.#elements.get(key); }
  elements() { return this.#elements.values(); }

  /** First and last index that are at least half in view. */
  visible() {
    const top = this.scroller.scrollTop;
    const half = this.itemHeight / 2;
    const first = Math.max(0, Math.ceil((top - half) / this.pitch)) * this.columns;
    const last = Math.floor((top + this.clientHeight - half) / this.pitch) * this.columns + this.columns - 1;
    return [first, Math.min(this.count - 1, last)];
  }

  /** Scrolls by as little as shows the item whole. */
  reveal(index) {
    const { y } = this.position(index);
    const { scroller } = this;
    const top = scroller.scrollTop;
    if (y < top) scroller.scrollTop = Math.max(0, y - this.gap);
    else if (y + this.itemHeight > top + this.clientHeight) scroller.scrollTop = y + this.itemHeight + this.gap - this.clientHeight;
    else return;
    this.render();
  }

  /** `shift`: how far everything has been scrolled since it was drawn, so that what moves starts where the eye saw it. */
  render(animate = false, shift = 0) {
    if (!this.clientWidth) return;
    const top = this.scroller.scrollTop;
    const leaps = Math.abs(top - this.#top) > this.clientHeight * LEAP;
    this.#top = top;
    const margin = leaps ? 0 : this.clientHeight * OVERSCAN;
    clearTimeout(this.#timer);
    if (leaps) this.#timer = setTimeout(() => this.schedule(), SETTLE_MS);
    const from = Math.max(0, Math.floor((top - margin) / this.pitch)) * this.columns;
    const to = Math.min(this.count, Math.ceil((top + this.clientHeight + margin) / this.pitch) * this.columns);
    const { actions } = this;
    const needed = new Map();
    for (let index = from; index < to; index += 1) needed.set(actions.keyOf(index), index);
    const pinned = this.pinned !== null && !needed.has(this.pinned) ? actions.indexOf(this.pinned) : -1;
    if (pinned >= 0) needed.set(this.pinned, pinned); // the one with the focus stays in the document, wherever it is
    for (const [key, element] of this.#elements) if (!needed.has(key)) this.#release(key, element);
    for (const [key, index] of needed) {
      let element = this.#elements.get(key);
      const isNew = !element;
      if (isNew) {
        element = this.#spare.pop() ?? actions.create();
        this.#elements.set(key, element);
        actions.fill(element, index);
        if (element.hidden) element.hidden = false;
        if (!element.isConnected) this.canvas.append(element);
      }
      this.#put(element, index, animate && !isNew, shift);
      actions.place(element, index);
    }
    // Only now: most of what left has come back as something else, and hiding costs more than moving.
    this.#hideSpare();
  }

  #put(element, index, animate, shift) {
    const { x, y } = this.position(index);
    if (element.x !== x || element.y !== y) {
      const transform = `translate(${x}px, ${y}px)`;
      if (animate) element.animate([{ transform: `translate(${element.x}px, ${element.y + shift}px)` }, { transform }], { duration: MOVE_MS, easing: "ease" });
      element.style.transform = transform;
      Object.assign(element, { x, y });
    }
    if (element.sized !== this.itemWidth) {
      element.sized = this.itemWidth;
      element.style.width = `${this.itemWidth}px`;
      element.style.height = `${this.itemHeight}px`;
    }
  }

  #hideSpare() {
    for (const element of this.#spare) if (!element.hidden) { element.hidden = true; this.actions.empty(element); }
  }

  #release(key, element) {
    this.#elements.delete(key);
    this.#spare.push(element);
  }
}
