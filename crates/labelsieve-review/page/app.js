// Puts the parts together: which class is open, what a key or an event from the server means for it.

import { api, follow } from "./api.js";
import { showAround, showClean, startAround } from "./around.js";
import { classList } from "./classlist.js";
import { forgetSimilar, offerNames, orderBySimilarity, resetFilters, startControls, view } from "./controls.js";
import { complain, decide, showStatus, step } from "./decide.js";
import { detail } from "./detail.js";
import { button, say, setText, $ } from "./dom.js";
import { grid } from "./grid.js";
import { showHelp } from "./help.js";
import { startKeys } from "./keys.js";
import { rowsOf } from "./order.js";
import { loadCurve, showCurve, showKept, showLambda, startPanel } from "./panel.js";
import { active, place } from "./place.js";
import { listen } from "./pointer.js";
import { closeDrawers, showTools, startShell } from "./shell.js";
import { CODE, UNDECIDED, store } from "./store.js";
import { strips } from "./strips.js";
import { retryAll } from "./thumbnails.js";

let opening = null; // AbortController of the class being opened

// ---- lists

/** Candidates of a class and the rows to show, by the order and the filters chosen. */
const rowsFor = async (c, signal) => {
  const data = await store.load(c);
  if (view.caption !== "") await data.fold();
  const similar = view.order === "similar" && c === place.class ? (await api.similar(c, view.similar)).rows : null;
  const next = view.order === "next" || (view.order === "similar" && !similar) ? await store.loadNext(data, signal) : [];
  return { data, rows: rowsOf(data, view, next, similar && Uint32Array.from(similar)) };
};

/** Lists anew. Another order starts at its top; otherwise the card under the eye stays. */
const relist = async ({ fromTop = false } = {}) => {
  if (place.allAtOnce) { strips.show(classList.shown); showAround(); return; }
  if (place.class === null) return;
  try {
    const { data, rows } = await rowsFor(place.class);
    if (data !== grid.data) return; // another class was opened meanwhile
    if (fromTop) grid.open(data, rows);
    else grid.reorder(view.order === "next" ? withFirst(rows, grid.row) : rows);
    $("refresh").hidden = true;
    showAround();
  } catch (error) {
    complain(`Could not sort: ${error.message}. `);
  }
};

/** The card under the eye, then what to look at next: nothing worth a look ends up above it. */
const withFirst = (rows, row) => {
  const at = rows.indexOf(row);
  if (at < 0 || grid.data.decided(row) !== UNDECIDED) return rows;
  const moved = rows.slice();
  moved.copyWithin(1, 0, at);
  moved[0] = row;
  return moved;
};

/** New relevance: what lies below the screen follows when it is sorted by what to look at next; the rest waits to be asked. */
const rescored = async (c) => {
  if (c !== place.class || place.allAtOnce) return;
  showKept(grid.data);
  const { untouched } = grid;
  if (!untouched) $("refresh").hidden = false;
  if (view.order !== "next" && !untouched) return;
  const { data, rows } = await rowsFor(c);
  if (c === place.class && data === grid.data) { grid.reorderBelow(rows); showAround(); }
};

// ---- going somewhere

const openClass = async (c, row) => {
  closeDrawers();
  opening?.abort();
  const control = opening = new AbortController();
  $("grid").inert = true; // still shows the class before
  place.allAtOnce = false;
  classList.mark(c);
  setText($("heading"), store.info(c).name);
  setText($("about"), "Loading…");
  if (c !== place.class) forgetSimilar();
  try {
    const data = await store.load(c);
    if (control.signal.aborted) return;
    place.class = c;
    offerNames(data.names);
    const { rows } = await rowsFor(c, control.signal);
    if (control.signal.aborted) return;
    $("grid").hidden = false;
    $("grid").inert = false;
    $("strips").hidden = true;
    grid.open(data, rows);
    showClean(data);
    $("refresh").hidden = true;
    const at = row === undefined ? 0 : grid.place(row);
    showAround();
    grid.focus(Math.max(0, at));
    history.replaceState(null, "", `#class/${c}`);
  } catch (error) {
    if (!control.signal.aborted) { setText($("about"), ""); complain(`Could not open this class: ${error.message}. `, button("Try again", () => openClass(c, row))); }
  }
};

const goToNextClass = () => {
  const next = classList.after(place.allAtOnce ? strips.class : place.class);
  if (next === undefined) { say("Every class is decided."); return; }
  if (detail.isOpen) detail.close();
  if (place.allAtOnce) strips.focus(next, 0);
  else openClass(next);
};

const showAll = () => {
  closeDrawers();
  if (place.allAtOnce) { openClass(strips.class ?? place.class ?? store.classes[0]?.class); return; }
  opening?.abort();
  place.allAtOnce = true;
  $("strips").hidden = false;
  $("grid").hidden = true;
  classList.mark(null);
  strips.show(classList.shown);
  showClean(null);
  showAround();
  history.replaceState(null, "", "#all");
  if (place.class !== null && classList.shown.some((info) => info.class === place.class)) strips.focus(place.class, 0);
};

const goToRow = (row) => {
  const { data } = detail;
  const at = place.allAtOnce ? -1 : grid.place(row);
  if (at >= 0) grid.focus(at);
  detail.show(data, row);
};

const orderLike = () => {
  const row = detail.isOpen ? detail.row : active().row;
  if (row === undefined || !store.session.can_score) return;
  const { data } = active();
  if (place.allAtOnce) { openClass(data.class, row); return; }
  if (detail.isOpen) detail.close();
  orderBySimilarity(row, data.text(row));
  relist();
};

// ---- deciding

const decideChosen = (name) => {
  const list = active();
  const { data } = list;
  // In the dialog the picture in it is meant: it may be a neighbour that is not even listed.
  const rows = detail.isOpen ? [detail.row] : list.chosen();
  if (!data || rows.length === 0 || (!place.allAtOnce && $("grid").inert)) return;
  const wasUndecided = rows.every((row) => data.decided(row) === UNDECIDED);
  decide(data, rows, name);
  if (CODE[name] === UNDECIDED) return; // to decide it again, most likely
  if (detail.isOpen && list.row !== detail.row) return;
  list.advance(rows, wasUndecided);
  if (detail.isOpen && list.row !== undefined) detail.show(list.data, list.row);
};
const decideRow = (row, name) => {
  const { data } = grid;
  const rows = grid.selected.has(row) ? [...grid.selected] : [row];
  const wasUndecided = rows.every((one) => data.decided(one) === UNDECIDED);
  decide(data, rows, name);
  grid.advance(rows, wasUndecided);
};
const turnBack = (which) => step(which, async (c, row) => {
  if (place.allAtOnce) return;
  if (c !== place.class) await openClass(c, row);
  else if (row !== undefined && grid.place(row) >= 0) grid.focus(grid.place(row));
  if (detail.isOpen && row !== undefined) detail.show(grid.data, row);
});

const move = (key, extend) => {
  if (place.allAtOnce) { strips.move(key); if (detail.isOpen && strips.row !== undefined) detail.show(strips.data, strips.row); return; }
  if (detail.isOpen) { const by = { ArrowLeft: -1, ArrowRight: 1 }[key]; if (by) stepDetail(by); return; }
  const target = grid.target(key);
  if (target !== undefined) grid.focus(target, { extend });
};
const stepDetail = (by) => {
  if (place.allAtOnce) strips.move(by > 0 ? "ArrowRight" : "ArrowLeft");
  else grid.focus(grid.index + by);
  if (active().row !== undefined) detail.show(active().data, active().row);
};
const openDetail = () => { const { data, row } = active(); if (data && row !== undefined) detail.show(data, row); };

// ---- events from the server

const reload = async () => {
  await store.open();
  store.forgetAll();
  retryAll();
  classList.refreshAll();
  showStatus();
  showLambda();
  loadCurve().catch(() => {});
  if (place.allAtOnce) strips.show(classList.shown);
  else if (place.class !== null) await openClass(place.class, grid.row);
};

const followServer = () => follow({
  decisions: (told) => store.saved(told.class, told),
  scoring: ({ class: c }) => { if (c === place.class) $("heading").dataset.scoring = "yes"; },
  scores: ({ class: c, revision }) => {
    if (c === place.class) delete $("heading").dataset.scoring;
    const data = store.peek(c);
    if (!data || revision <= data.revision) return;
    if (c !== place.class && !place.allAtOnce) { data.stale = true; data.next = null; return; }
    store.rescore(c).then(() => say("Relevance updated.")).catch((error) => complain(`No new relevance: ${error.message}. `));
  },
  curve: showCurve,
  lambda: ({ lambda }) => { store.session.lambda = lambda; showLambda(); },
  failed: ({ message }) => complain(`Scoring failed: ${message}. `),
  lost: () => {
    $("status").dataset.lost = "yes";
    complain("The server does not answer. Decisions cannot be saved until it is back; this page tries again by itself. If it was stopped, start it again with the same command and open the address that it prints. ");
  },
  back: () => {
    delete $("status").dataset.lost;
    $("banner").hidden = true;
    reload().then(() => say("Connected again.")).catch((error) => complain(`Connected again, but ${error.message}. `));
  },
});

// ---- start

const resume = () => {
  const [, fromAddress] = location.hash.match(/^#class\/(\d+)$/) ?? [];
  const { last, classes } = store.session;
  const c = fromAddress !== undefined && store.info(Number(fromAddress)) ? Number(fromAddress) : last?.class ?? classes[0]?.class;
  if (location.hash === "#all") { place.class = null; showAll(); return undefined; }
  if (c === undefined) { $("empty").replaceChildren("There are no classes to review."); $("empty").hidden = false; return undefined; }
  if (last?.class === c) say(`Resuming with ${store.info(c).name}.`);
  return openClass(c);
};

const start = async () => {
  startShell();
  try {
    await store.open();
  } catch (error) {
    complain(`Could not load the review: ${error.message}. `, button("Try again", () => location.reload()));
    return;
  }
  setText($("title"), store.session.title ?? "");
  $("caption-field").hidden = store.session.has_captions === false;
  startControls(relist);
  startPanel(() => {
    grid.threshold = strips.threshold = Number($("keep").value);
    showKept(place.allAtOnce ? null : grid.data);
    active().refreshAll();
  });
  classList.start((c) => openClass(c));
  strips.start({ open: openClass, rowsFor, openCard: openDetail, decide: decideChosen });
  listen(grid, { open: openDetail, decide: decideRow });
  detail.start({ decide: decideChosen, step: stepDetail, go: goToRow, similar: orderLike, closed: () => active().focusHere() });
  startAround({ nextClass: goToNextClass, resetFilters: () => { resetFilters(); relist(); } });
  store.on("counts", ({ class: c }) => { showStatus(); if (c === place.class) showAround(); });
  store.on("scores", ({ class: c }) => rescored(c));
  $("find-class").addEventListener("input", () => { if (place.allAtOnce) { strips.show(classList.shown); showAround(); } });

  for (const control of document.querySelectorAll("#actions [data-decide]")) control.addEventListener("click", () => decideChosen(control.dataset.decide));
  $("open-detail").addEventListener("click", openDetail);
  $("unselect").addEventListener("click", () => { grid.select([]); grid.focusHere(); });
  $("undo").addEventListener("click", () => turnBack("undo"));
  $("redo").addEventListener("click", () => turnBack("redo"));
  $("refresh").addEventListener("click", () => relist());
  $("caption").addEventListener("keydown", (event) => { if (event.key === "Enter") active().focusHere(); });
  $("all-classes").addEventListener("click", showAll);
  $("skip").addEventListener("click", (event) => { event.preventDefault(); active().focusHere(); });
  $("open-help").addEventListener("click", showHelp);
  startKeys({
    dialog: () => (detail.isOpen ? "detail" : $("help").open ? "help" : undefined),
    escape: () => { if (!closeDrawers() && grid.selected.size > 0) grid.select([]); active().focusHere(); },
    undo: () => turnBack("undo"),
    redo: () => turnBack("redo"),
    decide: decideChosen,
    similar: orderLike,
    selectAll: () => { if (!place.allAtOnce) grid.select(grid.rows); },
    move,
    open: openDetail,
    close: () => detail.close(),
    nextClass: goToNextClass,
    allClasses: showAll,
    refresh: () => relist(),
    search: () => { showTools(true); $("caption").focus(); },
    findClass: () => { if (getComputedStyle($("classes")).display === "none") $("open-classes").click(); $("find-class").focus(); },
    help: showHelp,
  });
  showStatus();
  followServer();
  await resume();
  loadCurve().catch(() => {}); // the events bring it later
};

start();
