// The data of the page: the session, its classes, and the candidates of recently viewed classes.

import { api } from "./api.js";
import { folded } from "./dom.js";

export const UNDECIDED = 0, ACCEPT = 1, REJECT = 2, UNSURE = 3;
export const CODE = { undecided: UNDECIDED, accept: ACCEPT, reject: REJECT, unsure: UNSURE };
export const DECIDED = ["undecided", "accepted", "rejected", "unsure"];

/** Why a session that cannot score lacks what follows from features. */
export const NO_FEATURES = "This review was started without features of clean examples and candidates";

/** Candidates kept in memory over all classes; the least recently used classes go first. */
const MAX_CANDIDATES = 400_000;
/** Milliseconds of work at a stretch, so that the page stays responsive. */
const SLICE_MS = 12;

/** The candidates of one class. */
export class Candidates {
  /** `since`: decisions of that moment and before are in the answer. */
  constructor(answer, since) {
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
    this.since = since;
    this.at = new Map(); // row -> moment of its decision, where it came later
    this.clean = answer.clean;
    this.pending = new Map(); // row -> decision on its way to the disk
    this.regroup(answer.group);
    this.next = null; // rows, what to look at next
    this.stale = 0; // reasons to ask for its scores again
    this.captions = null; // folded, for searching
  }

  /** Near-duplicates: known only once the class's graph has been made. */
  regroup(group) {
    this.group = Uint32Array.from(group);
    this.groupSize = new Uint32Array(this.n);
    for (const first of this.group) this.groupSize[first] += 1;
  }

  /**
   * Takes over what was saved and gives the rows that it changes. Answers and events overtake each other: whatever is later
   * than the rest stays.
   */
  take({ at, changes }) {
    const newer = changes.filter(([row]) => at > (this.at.get(row) ?? this.since));
    for (const [row, code] of newer) {
      this.decision[row] = code;
      this.at.set(row, at);
    }
    if (newer.length > 0) this.next = null;
    return newer.map(([row]) => row);
  }

  meanRelevance() {
    let sum = 0;
    for (const value of this.relevance) sum += value;
    return this.n > 0 ? sum / this.n : null;
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
  isInUse = () => false; // whether a class is on the screen: those stay in memory
  #loaded = new Map(); // class -> Candidates, least recently used first
  #loading = new Map(); // class -> promise of its Candidates
  #forgotten = 0; // how often everything was
  #revisions = new Map(); // class -> the newest one that the server has told of
  #at = ""; // moment of the newest decision that the server has told of
  #listening = new Set(); // lists that take down what is saved while a question is on its way

  tell(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }
  on(type, action) { this.addEventListener(type, (event) => action(event.detail)); }

  /** An answer, the moment before which it knows everything, and what was saved while it was on its way: it may lack that. */
  async #ask(question) {
    const since = this.#at, meanwhile = [];
    this.#listening.add(meanwhile);
    try {
      return { answer: await question(), since, meanwhile };
    } finally {
      this.#listening.delete(meanwhile);
    }
  }

  async open() {
    const { answer, since, meanwhile } = await this.#ask(api.session);
    this.session = { ...answer, at: since };
    this.classes = answer.classes.map((info) => ({ ...info, at: since }));
    this.positions = new Map(this.classes.map((info, position) => [info.class, position]));
    for (const saved of meanwhile) this.#count(saved);
  }

  info(c) { return this.classes[this.positions.get(c)]; }
  peek(c) { return this.#loaded.get(c); }

  async load(c) {
    const known = this.#loaded.get(c);
    if (known) {
      this.#loaded.delete(c); // to the end: recently used
      this.#loaded.set(c, known);
      if (known.stale > 0) await this.rescore(c);
      return known;
    }
    // Later requests share this one: new decisions and scores are reported only once.
    if (!this.#loading.has(c)) {
      const fetched = this.#fetch(c).finally(() => { if (this.#loading.get(c) === fetched) this.#loading.delete(c); });
      this.#loading.set(c, fetched);
    }
    return this.#loading.get(c);
  }

  async #fetch(c) {
    const forgotten = this.#forgotten;
    const { answer, since, meanwhile } = await this.#ask(() => api.classOf(c));
    if (forgotten !== this.#forgotten) return this.load(c); // asked over a connection that was lost
    const data = new Candidates(answer, since);
    for (const saved of meanwhile) if (saved.class === c) data.take(saved);
    if (data.revision < (this.#revisions.get(c) ?? 0)) data.stale += 1;
    this.#loaded.set(c, data);
    this.#forget(data);
    this.info(c).mean_relevance = data.meanRelevance();
    if (data.stale > 0) await this.rescore(c);
    return data;
  }

  #forget(kept) {
    let total = 0;
    for (const data of this.#loaded.values()) total += data.n;
    for (const [c, data] of this.#loaded) {
      if (total <= MAX_CANDIDATES) return;
      if (data === kept || data.pending.size > 0 || this.isInUse(c)) continue;
      this.#loaded.delete(c);
      total -= data.n;
    }
  }

  /** Forgets all candidates: after a lost connection everything is fetched again. */
  forgetAll() {
    this.#forgotten += 1;
    this.#loaded.clear();
    this.#loading.clear();
  }

  async loadNext(data, signal) {
    if (data.next) return data.next;
    const { revision, rows } = await api.next(data.class, signal);
    if (revision >= data.revision) data.next = rows; // else it was scored again meanwhile, and the next event brings the order
    return rows;
  }

  // ---- relevance

  /** The server has new scores of a class. Whether they are news here: they are fetched when the class is looked at. */
  scored(c, revision) {
    this.#revisions.set(c, Math.max(revision, this.#revisions.get(c) ?? 0));
    const data = this.#loaded.get(c);
    if (!data || revision <= data.revision) return false;
    data.stale += 1;
    data.next = null;
    return true;
  }

  /** λ is another one: no relevance is up to date. */
  setLambda({ lambda, command }) {
    Object.assign(this.session, { lambda, command });
    for (const data of this.#loaded.values()) {
      data.stale += 1;
      data.next = null;
    }
  }

  /** Asks for the scores of a class; the request also tells the server that the class is being viewed. */
  async rescore(c) {
    const data = this.#loaded.get(c);
    if (!data) return;
    const { stale } = data;
    const { revision, relevance, group } = await api.scores(c);
    if (data.stale === stale) data.stale = 0; // else there is a newer reason
    if (revision <= data.revision) return; // known, or overtaken by a later answer
    data.revision = revision;
    data.next = null;
    data.before = data.relevance;
    data.relevance = Float32Array.from(relevance);
    if (group) data.regroup(group);
    this.info(c).mean_relevance = data.meanRelevance();
    this.tell("scores", { class: c });
  }

  // ---- decisions

  /** What the server saved: an answer to this page, about `data`, or an event, of this page or another one. */
  saved(answer, data) {
    for (const meanwhile of this.#listening) meanwhile.push(answer);
    if (answer.at > this.#at) this.#at = answer.at;
    for (const known of new Set([data, this.#loaded.get(answer.class)])) {
      const rows = known?.take(answer) ?? [];
      if (rows.length > 0) this.tell("rows", { class: answer.class, rows });
    }
    if (this.session) this.#count(answer);
  }

  #count({ class: c, at, changes, counts, n_decisions, n_undo, n_redo }) {
    const info = this.info(c);
    if (at > info.at) Object.assign(info, counts, { at });
    if (at > this.session.at) Object.assign(this.session, { n_decisions, n_undo, n_redo, at, last: { class: c, row: changes[0]?.[0] ?? null } });
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
