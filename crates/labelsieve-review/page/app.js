// Puts the parts together: which class is open, what a key or an event from the server means for it.

import { showAround, showClean, startAround } from "./around.js";
import { classList } from "./classlist.js";
import { forgetSimilar, offerNames, orderBySimilarity, resetFilters, startControls } from "./controls.js";
import { complain, decide, showStatus, step } from "./decide.js";
import { detail } from "./detail.js";
import { button, say, setText, $ } from "./dom.js";
import { followServer, rescore } from "./events.js";
import { grid } from "./grid.js";
import { showHelp } from "./help.js";
import { startKeys } from "./keys.js";
import { relist, rescored, rowsFor } from "./lists.js";
import { loadCurve, showKept, showSettings, startPanel } from "./panel.js";
import { active, inView, place } from "./place.js";
import { listen } from "./pointer.js";
import { closeDrawers, showTools, startShell } from "./shell.js";
import { CODE, NO_FEATURES, UNDECIDED, store } from "./store.js";
import { strips } from "./strips.js";
import { retryAll } from "./thumbnails.js";

let opening = null; // AbortController of the class being opened

// ---- going somewhere

const openClass = async (c, row) => {
  closeDrawers();
  opening?.abort();
  const control = opening = new AbortController();
  place.opening = c;
  $("grid").inert = $("strips").inert = true; // still show what was before
  classList.mark(c);
  setText($("heading"), store.info(c).name);
  setText($("about"), "Loading…");
  try {
    const data = await store.load(c);
    if (control.signal.aborted) return;
    if (c !== place.class) forgetSimilar();
    offerNames(data.names);
    const { rows } = await rowsFor(c, control.signal);
    if (control.signal.aborted) return;
    Object.assign(place, { class: c, allAtOnce: false });
    settled();
    $("grid").hidden = false;
    $("strips").hidden = true;
    grid.open(data, rows);
    showClean(data);
    $("refresh").hidden = true;
    const at = row === undefined ? 0 : grid.place(row);
    showAround();
    grid.focus(Math.max(0, at));
    history.replaceState(null, "", `#class/${c}`);
    if (data.stale > 0) rescore(c); // new scores were told of while the order was being fetched
  } catch (error) {
    if (control.signal.aborted) return;
    settled();
    goBack();
    complain(`Could not open ${store.info(c).name}: ${error.message}. `, button("Try again", () => openClass(c, row)));
  }
};
const settled = () => {
  opening = place.opening = null;
  $("grid").inert = $("strips").inert = false;
};
/** Where the person still is, because nothing else could be opened. */
const goBack = () => {
  classList.mark(place.allAtOnce ? null : place.class);
  if (grid.data) offerNames(grid.data.names);
  if (grid.data || place.allAtOnce) { showAround(); active().focusHere(); }
  else setText($("about"), "");
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
  settled();
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
  if (row === undefined) return;
  if (!store.session.can_score) { complain(`${NO_FEATURES}, so nothing is known of how similar pictures are. `); return; }
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
  if (!data || rows.length === 0 || place.opening !== null) return;
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
  if (detail.isOpen && row !== undefined && c === place.class) detail.show(grid.data, row);
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

// ---- the server

/** Reloads everything: changes may have been missed while the connection was lost. */
const reload = async () => {
  if (!store.session) { location.reload(); return; }
  await store.open();
  store.forgetAll();
  retryAll();
  classList.refreshAll();
  showStatus();
  showSettings();
  loadCurve().catch(() => {});
  const c = place.opening ?? place.class;
  if (place.allAtOnce && place.opening === null) strips.show(classList.shown);
  else if (c !== null) await openClass(c, c === place.class ? grid.row : undefined);
};

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

const start = async (listening) => {
  startShell();
  await listening;
  try {
    await store.open();
  } catch (error) {
    complain(`Could not load the review: ${error.message}. `, button("Try again", () => location.reload()));
    return;
  }
  setText($("title"), store.session.title ?? "");
  if (!store.session.has_captions) setText($("caption-label"), "Id"); // which is what cards show instead
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
  store.on("counts", ({ class: c }) => { showStatus(); if (c === place.class && place.opening === null) showAround(); });
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
  await resume();
  loadCurve().catch(() => {}); // the events bring it later
};

store.isInUse = (c) => inView().includes(c);
const { listening, begin } = followServer(reload);
begin(start(listening));
