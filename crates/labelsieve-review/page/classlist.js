// The list of classes with the progress of each, found by name.

import { count, folded, make, plural, setText, wordsOf, $ } from "./dom.js";
import { store } from "./store.js";
import { Windowed } from "./windowed.js";

const LINE_PX = 38;

class ClassList {
  shown = []; // classes, as found
  current = null;

  /** Calls `open(class)` when a class is chosen. */
  start(open) {
    const scroller = $("class-list");
    this.list = make("div", { class: "canvas", role: "listbox", "aria-label": "Classes" });
    scroller.append(this.list);
    this.window = new Windowed(scroller, this.list, {
      measure: (width) => ({ columns: 1, width: width - 6, height: LINE_PX, gap: 2 }),
      keyOf: (index) => this.shown[index].class,
      indexOf: (c) => this.shown.findIndex((info) => info.class === c),
      create: () => this.#create(),
      fill: (line, index) => { line.class = this.shown[index].class; setText(line.parts.name, this.shown[index].name); this.#refresh(line); },
      place: (line, index) => this.#mark(line, index),
      empty: (line) => { line.class = undefined; },
    });
    $("find-class").addEventListener("input", () => this.find());
    $("find-class").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.shown.length > 0) open(this.shown[0].class);
      if (event.key === "ArrowDown") { event.preventDefault(); this.#focus(0); }
    });
    this.list.addEventListener("click", (event) => {
      const line = event.target.closest(".class-line");
      if (line) open(line.class);
    });
    this.list.addEventListener("keydown", (event) => {
      const at = this.shown.findIndex((info) => info.class === document.activeElement.class);
      const target = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.shown.length - 1 }[event.key];
      if (target !== undefined) { event.preventDefault(); this.#focus(target); }
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(this.shown[at].class); }
    });
    store.on("counts", ({ class: c }) => { this.#refresh(this.window.element(c)); this.#total(); });
    this.find();
  }

  find() {
    const words = wordsOf($("find-class").value);
    this.shown = store.classes.filter((info) => { const name = folded(info.name); return words.every((word) => name.includes(word)); });
    this.list.hidden = this.shown.length === 0;
    this.window.reset(this.shown.length);
    if (words.length === 0 && this.current !== null) this.mark(this.current);
    this.#total();
  }

  refreshAll() { this.find(); for (const line of this.window.elements()) this.#refresh(line); }

  #total() {
    const n = store.classes.length;
    const finished = store.classes.filter((info) => { const { total, decided } = store.counted(info.class); return total > 0 && decided >= total; }).length;
    const touched = store.classes.filter((info) => store.counted(info.class).decided > 0).length;
    const found = this.shown.length === n ? plural(n, "class", "classes") : `${count(this.shown.length)} of ${plural(n, "class", "classes")}`;
    setText($("progress"), this.shown.length === 0 ? "No class has such a name."
      : `${found}; ${count(touched)} looked at${finished > 0 ? `, ${count(finished)} fully decided` : ""}`);
  }

  #create() {
    const parts = { name: make("span", { class: "class-name" }), counts: make("span", { class: "counts" }), told: make("span", { class: "sr" }), yes: make("i", { class: "yes" }), no: make("i", { class: "no" }), unsure: make("i", { class: "unsure" }) };
    const line = make("div", { class: "class-line", role: "option", tabindex: "-1", "aria-selected": "false" },
      parts.name, " ", parts.counts, parts.told, make("span", { class: "stack" }, parts.yes, parts.no, parts.unsure));
    line.parts = parts;
    return line;
  }

  #refresh(line) {
    if (!line || line.class === undefined) return;
    const { name, n_candidates: n, n_accept, n_reject, n_unsure } = store.info(line.class);
    const decided = n_accept + n_reject + n_unsure;
    setText(line.parts.counts, decided > 0 ? `${count(decided)} / ${count(n)}` : count(n));
    for (const [part, share] of [["yes", n_accept], ["no", n_reject], ["unsure", n_unsure]]) line.parts[part].style.width = `${(100 * share) / Math.max(1, n)}%`;
    setText(line.parts.told, decided > 0 ? ` candidates decided, ${n_accept} accepted, ${n_reject} rejected` : " candidates");
    line.title = `${name}: ${n_accept} accepted, ${n_reject} rejected, ${n_unsure} unsure of ${n}`;
  }

  #mark(line, index) {
    const chosen = line.class === this.current;
    line.setAttribute("aria-selected", String(chosen));
    line.setAttribute("aria-posinset", index + 1);
    line.setAttribute("aria-setsize", this.shown.length);
    line.tabIndex = chosen || (index === 0 && !this.shown.some((info) => info.class === this.current)) ? 0 : -1;
  }

  #focus(index) {
    const at = Math.max(0, Math.min(this.shown.length - 1, index));
    if (this.shown.length === 0) return;
    this.window.reveal(at);
    this.window.element(this.shown[at].class)?.focus({ preventScroll: true });
  }

  mark(c) {
    this.current = c;
    const at = this.shown.findIndex((info) => info.class === c);
    this.window.pinned = at >= 0 ? c : null;
    if (at >= 0) this.window.reveal(at);
    this.window.render();
  }

  /** The next class after this one that has something undecided, around the end if need be. */
  after(c) {
    const list = this.shown.length > 0 ? this.shown : store.classes;
    const at = list.findIndex((info) => info.class === c);
    for (let step = 1; step <= list.length; step += 1) {
      const info = list[(at + step) % list.length];
      const { total, decided } = store.counted(info.class);
      if (decided < total && info.class !== c) return info.class;
    }
    return undefined;
  }
}

export const classList = new ClassList();
