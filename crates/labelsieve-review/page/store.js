// What the page knows: the session, its classes, and the candidates of those that were looked at lately.

import { api } from "./api.js";
import { folded } from "./dom.js";

export const UNDECIDED = 0, ACCEPT = 1, REJECT = 2, UNSURE = 3;
export const CODE = { undecided: UNDECIDED, accept: ACCEPT, reject: REJECT, unsure: UNSURE };
export const DECIDED = ["undecided", "accepted", "rejected", "unsure"];

/** Candidates kept in memory over all classes; the least recently used classes go first. */
const MAX_CANDIDATES = 400_000;
/** Milliseconds of work at a stretch, so that the page goes on answering. */
const SLICE_MS = 12;

/** The candidates of one class. */
export class Candidates {
  constructor(answer) {
    this.class = answer.class;
    this.revision = answer.revision;
    this.n = answer.id.length;
    this.example = answer.example;
    this.id = answer.id;
    this.caption = answer.caption;
    this.names = answer.names;
    this.name = Int32Array.from(answer.name);
    this.relevance = Float32Array.from(answer.relevance);
    this.before = this.relevance; // what it was until the last scoring
    this.decision = Uint8Array.from(answer.decision);
    this.clean = answer.clean;
    this.pending = new Map(); // row -> decision on its way to the disk
    this.regroup(answer.group);
    this.next = null; // rows, what to look at next
    this.stale = false; // scores have changed since
    this.captions = null; // folded, for searching
  }

  /** Near-duplicates: known only once the class's graph has been made. */
  regroup(group) {
    this.group = Uint32Array.from(group);
    this.groupSize = new Uint32Array(this.n);
    for (const first of this.group) this.groupSize[first] += 1;
  }

  /** The decision to show: what is on its way counts. */
  decided(row) { return this.pending.get(row)?.code ?? this.decision[row]; }

  /** Other members of the row's group of near-duplicates. */
  duplicates(row) { return this.groupSize[this.group[row]] - 1; }

  text(row) { return this.caption[row] ?? this.id[row]; }

  /** Folds all captions once, in slices. */
  async fold() {
    if (this.captions) return;
    const captions = new Array(this.n);
    let started = performance.now();
    for (let row = 0; row < this.n; row += 1) {
      captions[row] = folded(this.caption[row] ?? this.id[row]);
      if (row % 256 === 255 && performance.now() - started > SLICE_MS) {
        await new Promise((resume) => setTimeout(resume));
        started = performance.now();
      }
    }
    this.captions = captions;
  }
}

class Store extends EventTarget {
  session = null;
  classes = []; // as the session lists them
  #loaded = new Map(); // class -> Candidates, least recently used first
  #loading = new Map(); // class -> promise of its Candidates

  tell(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }
  on(type, action) { this.addEventListener(type, (event) => action(event.detail)); }

  async open() {
    this.session = await api.session();
    this.classes = this.session.classes;
    this.positions = new Map(this.classes.map((info, position) => [info.class, position]));
  }

  info(c) { return this.classes[this.positions.get(c)]; }
  peek(c) { return this.#loaded.get(c); }

  async load(c) {
    const known = this.#loaded.get(c);
    if (known) {
      this.#loaded.delete(c); // to the end: recently used
      this.#loaded.set(c, known);
      if (known.stale) await this.rescore(c);
      return known;
    }
    // Whoever else wants it meanwhile gets the same: decisions and scores are to be told to one.
    if (!this.#loading.has(c)) this.#loading.set(c, this.#fetch(c).finally(() => this.#loading.delete(c)));
    return this.#loading.get(c);
  }

  async #fetch(c) {
    const data = new Candidates(await api.classOf(c));
    this.#loaded.set(c, data);
    this.#forget(data);
    return data;
  }

  #forget(kept) {
    let total = 0;
    for (const data of this.#loaded.values()) total += data.n;
    for (const [c, data] of this.#loaded) {
      if (total <= MAX_CANDIDATES) return;
      if (data === kept || data.pending.size > 0) continue;
      this.#loaded.delete(c);
      total -= data.n;
    }
  }

  /** Forgets all candidates: after a lost connection everything is fetched again. */
  forgetAll() { this.#loaded.clear(); }

  async loadNext(data, signal) {
    if (data.next) return data.next;
    const { revision, rows } = await api.next(data.class, signal);
    if (revision >= data.revision) data.next = rows; // else it was scored again meanwhile, and the next event brings the order
    return rows;
  }

  async rescore(c) {
    const data = this.#loaded.get(c);
    if (!data) return;
    const { revision, relevance, group } = await api.scores(c);
    if (revision < data.revision) return; // a later answer overtook this one
    data.stale = false;
    data.revision = revision;
    data.next = null;
    data.before = data.relevance;
    data.relevance = Float32Array.from(relevance);
    if (group) data.regroup(group);
    this.tell("scores", { class: c });
  }

  /** What the server saved: an answer to this page or an event from another one. */
  saved(c, answer, ticket) {
    const data = this.#loaded.get(c);
    if (data) {
      if (ticket !== undefined) this.settle(data, ticket);
      for (const [row, code] of answer.changes) data.decision[row] = code;
      data.next = null;
      this.tell("rows", { class: c, rows: answer.changes.map(([row]) => row) });
    }
    Object.assign(this.info(c), answer.counts);
    for (const key of ["n_decisions", "n_undo", "n_redo"]) this.session[key] = answer[key] ?? this.session[key];
    this.session.last = { class: c, row: answer.changes[0]?.[0] ?? null };
    this.tell("counts", { class: c });
  }

  /** Removes what was on its way under this ticket, saved or not. */
  settle(data, ticket) {
    const rows = [];
    for (const [row, entry] of data.pending) if (entry.ticket === ticket) { data.pending.delete(row); rows.push(row); }
    this.tell("rows", { class: data.class, rows });
  }

  counted(c) {
    const { n_candidates, n_accept, n_reject, n_unsure } = this.info(c);
    return { total: n_candidates, decided: n_accept + n_reject + n_unsure };
  }
}

export const store = new Store();
