// Puts the parts together: which class is open, what a key or an event from the server means for it.

import { api, follow } from "./api.js";
import { classList } from "./classlist.js";
import { forgetSimilar, offerNames, orderBySimilarity, resetFilters, startControls, view } from "./controls.js";
import { complain, decide, showStatus, step } from "./decide.js";
import { detail } from "./detail.js";
import { button, count, make, plural, say, setText, $ } from "./dom.js";
import { grid } from "./grid.js";
import { showHelp } from "./help.js";
import { startKeys } from "./keys.js";
import { isFiltered, rowsOf } from "./order.js";
import { addPoint, loadCurve, showKept, showLambda, startPanel } from "./panel.js";
import { smallPicture } from "./pictures.js";
import { listen } from "./pointer.js";
import { closeDrawers, startShell } from "./shell.js";
import { CODE, UNDECIDED, store } from "./store.js";
import { strips } from "./strips.js";
import { retryAll } from "./thumbnails.js";

const MAX_CLEAN = 6;

let current = null; // the open class
let allAtOnce = false;
let opening = null; // AbortController of the class being opened

const active = () => (allAtOnce ? strips : grid);

// ---- lists

/** Candidates of a class and the rows to show, by the order and the filters chosen. */
const rowsFor = async (c, signal) => {
  const data = await store.load(c, signal);
  if (view.caption !== "") await data.fold();
  const similar = view.order === "similar" && c === current ? (await api.similar(c, view.similar)).rows : null;
  const next = view.order === "next" || (view.order === "similar" && !similar) ? await store.loadNext(data, signal) : [];
  return { data, rows: rowsOf(data, view, next, similar && Uint32Array.from(similar)) };
};

const relist = async () => {
  if (allAtOnce) { strips.show(classList.shown); showAround(); return; }
  if (current === null) return;
  try {
    const { rows } = await rowsFor(current);
    grid.reorder(rows);
    $("refresh").hidden = true;
    showAround();
  } catch (error) {
    complain(`Could not sort: ${error.message}. `);
  }
};

/** New relevance: what lies below the screen follows when it is sorted by what to look at next; the rest waits to be asked. */
const rescored = async (c) => {
  if (c !== current || allAtOnce) return;
  showKept(grid.data);
  const { untouched } = grid;
  if (!untouched) $("refresh").hidden = false;
  if (view.order !== "next" && !untouched) return;
  const { data, rows } = await rowsFor(c);
  if (c === current && data === grid.data) { grid.reorderBelow(rows); showAround(); }
};

// ---- texts around the pictures

const showAround = () => {
  const { data } = grid;
  $("grid").hidden = allAtOnce || grid.rows.length === 0;
  $("strips").hidden = !allAtOnce;
  $("all-classes").setAttribute("aria-pressed", String(allAtOnce));
  showKept(allAtOnce ? null : data);
  showChosen();
  for (const id of ["done", "empty"]) $(id).hidden = true;
  if (allAtOnce) {
    setText($("heading"), "All classes");
    setText($("about"), "The first candidates of every class. A click on a name opens the class.");
    setText($("shown"), plural(strips.shown.length, "class", "classes"));
    document.title = "All classes · Labelsieve";
    $("refresh").hidden = false;
    setText($("refresh"), "Sort again");
    return;
  }
  setText($("refresh"), "New relevance: sort again");
  if (!data) return;
  const info = store.info(current);
  const { total, decided } = store.counted(current);
  setText($("heading"), info.name);
  setText($("about"), `${plural(info.n_clean, "clean example")}, ${plural(total, "candidate")}: ${count(info.n_accept)} accepted, ${count(info.n_reject)} rejected, ${count(info.n_unsure)} unsure`);
  document.title = `${info.name} · Labelsieve`;
  const hidden = grid.rows.length < data.n;
  setText($("shown"), hidden ? `${count(grid.rows.length)} of ${count(data.n)} candidates shown${!isFiltered(view) && view.once ? ", near-duplicates once" : ""}` : plural(data.n, "candidate"));
  showEmpty(data, total, decided);
};

/** A few clean examples beside the name of the class: they say what it means. */
const showClean = (data) => {
  const shown = (data?.clean ?? []).slice(0, MAX_CLEAN);
  $("clean").replaceChildren(...shown.map(({ example, id, caption }) => make("li", { title: `clean example: ${caption ?? id}` }, smallPicture(example, caption ?? id))));
  $("clean").hidden = shown.length === 0;
};

const showEmpty = (data, total, decided) => {
  const nextClass = () => button("Next class (N)", goToNextClass);
  if (total > 0 && decided >= total) {
    const left = classList.after(current) !== undefined;
    $("done").replaceChildren("All candidates of this class are decided. ", left ? nextClass() : "So are those of every other class: run the command under “Keep the result”.");
    $("done").hidden = false;
  }
  if (grid.rows.length > 0) return;
  $("empty").hidden = false;
  if (data.n === 0) $("empty").replaceChildren("This class has no candidates. ", nextClass());
  else $("empty").replaceChildren("No candidate matches the filter. ", button("Reset filters", () => { resetFilters(); relist(); }));
};

const showChosen = () => {
  const n = active().selected.size;
  const { data } = active();
  const text = n > 0 ? `${plural(n, "picture")} selected` : active().row !== undefined && data ? data.text(active().row) : "";
  setText($("chosen"), text);
  $("unselect").hidden = n === 0;
  for (const control of $("actions").querySelectorAll("[data-decide], #open-detail")) control.disabled = text === "";
};

// ---- going somewhere

const openClass = async (c, row) => {
  closeDrawers();
  opening?.abort();
  const control = opening = new AbortController();
  $("grid").inert = true; // still shows the class before
  allAtOnce = false;
  classList.mark(c);
  setText($("heading"), store.info(c).name);
  setText($("about"), "Loading…");
  if (c !== current) forgetSimilar();
  try {
    const data = await store.load(c, control.signal);
    if (control.signal.aborted) return;
    current = c;
    offerNames(data.names);
    const { rows } = await rowsFor(c, control.signal);
    if (control.signal.aborted) return;
    $("grid").hidden = false;
    $("grid").inert = false;
    $("strips").hidden = true;
    grid.open(data, rows);
    showClean(data);
    $("refresh").hidden = true;
    const place = row === undefined ? 0 : grid.place(row);
    showAround();
    if (place >= 0) grid.focus(place);
    history.replaceState(null, "", `#class/${c}`);
  } catch (error) {
    if (!control.signal.aborted) { setText($("about"), ""); complain(`Could not open this class: ${error.message}. `, button("Try again", () => openClass(c, row))); }
  }
};

const goToNextClass = () => {
  const next = classList.after(allAtOnce ? strips.class : current);
  if (next === undefined) { say("Every class is decided."); return; }
  if (detail.isOpen) detail.close();
  if (allAtOnce) strips.focus(next, 0);
  else openClass(next);
};

const showAll = () => {
  closeDrawers();
  if (allAtOnce) { openClass(strips.class ?? current ?? store.classes[0]?.class); return; }
  opening?.abort();
  allAtOnce = true;
  $("strips").hidden = false;
  $("grid").hidden = true;
  classList.mark(null);
  strips.show(classList.shown);
  showClean(null);
  showAround();
  history.replaceState(null, "", "#all");
  if (current !== null && classList.shown.some((info) => info.class === current)) strips.focus(current, 0);
};

const goToRow = (row) => {
  const { data } = detail;
  const place = allAtOnce ? -1 : grid.place(row);
  if (place >= 0) grid.focus(place);
  detail.show(data, row);
};

const orderLike = () => {
  const row = detail.isOpen ? detail.row : active().row;
  if (row === undefined || !store.session.can_score) return;
  const { data } = active();
  if (allAtOnce) { openClass(data.class, row); return; }
  if (detail.isOpen) detail.close();
  orderBySimilarity(row, data.text(row));
  relist();
};

// ---- deciding

const decideChosen = (name) => {
  const place = active();
  const { data } = place;
  // In the dialog the picture in it is meant: it may be a neighbour that is not even listed.
  const rows = detail.isOpen ? [detail.row] : place.chosen();
  if (!data || rows.length === 0 || (!allAtOnce && $("grid").inert)) return;
  const wasUndecided = rows.every((row) => data.decided(row) === UNDECIDED);
  decide(data, rows, name);
  if (CODE[name] === UNDECIDED) return; // to decide it again, most likely
  if (detail.isOpen && place.row !== detail.row) return;
  place.advance(rows, wasUndecided);
  if (detail.isOpen && place.row !== undefined) detail.show(place.data, place.row);
};
const decideRow = (row, name) => {
  const { data } = grid;
  const rows = grid.selected.has(row) ? [...grid.selected] : [row];
  const wasUndecided = rows.every((one) => data.decided(one) === UNDECIDED);
  decide(data, rows, name);
  grid.advance(rows, wasUndecided);
};
const turnBack = (which) => step(which, async (c, row) => {
  if (allAtOnce) return;
  if (c !== current) await openClass(c, row);
  else if (row !== undefined && grid.place(row) >= 0) grid.focus(grid.place(row));
  if (detail.isOpen && row !== undefined) detail.show(grid.data, row);
});

const move = (key, extend) => {
  if (allAtOnce) { strips.move(key); if (detail.isOpen && strips.row !== undefined) detail.show(strips.data, strips.row); return; }
  if (detail.isOpen) { const by = { ArrowLeft: -1, ArrowRight: 1 }[key]; if (by) stepDetail(by); return; }
  const target = grid.target(key);
  if (target !== undefined) grid.focus(target, { extend });
};
const stepDetail = (by) => {
  if (allAtOnce) strips.move(by > 0 ? "ArrowRight" : "ArrowLeft");
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
  if (allAtOnce) strips.show(classList.shown);
  else if (current !== null) await openClass(current, grid.row);
};

const followServer = () => follow({
  decisions: (told) => store.saved(told.class, told),
  scoring: ({ class: c }) => { if (c === current) $("heading").dataset.scoring = "yes"; },
  scores: ({ class: c, revision }) => {
    if (c === current) delete $("heading").dataset.scoring;
    const data = store.peek(c);
    if (!data || revision <= data.revision) return;
    if (c !== current && !allAtOnce) { data.stale = true; data.next = null; return; }
    store.rescore(c).then(() => say("Relevance updated.")).catch((error) => complain(`No new relevance: ${error.message}. `));
  },
  curve: addPoint,
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
  if (location.hash === "#all") { current = null; showAll(); return undefined; }
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
    showKept(allAtOnce ? null : grid.data);
    active().refreshAll();
  });
  classList.start((c) => openClass(c));
  strips.start({ open: openClass, rowsFor, openCard: openDetail, decide: decideChosen });
  listen(grid, { open: openDetail, decide: decideRow });
  detail.start({ decide: decideChosen, step: stepDetail, go: goToRow, similar: orderLike, closed: () => active().focusHere() });
  for (const place of [grid, strips]) place.addEventListener("moved", showChosen);
  store.on("counts", ({ class: c }) => { showStatus(); if (c === current) showAround(); });
  store.on("scores", ({ class: c }) => rescored(c));
  $("find-class").addEventListener("input", () => { if (allAtOnce) { strips.show(classList.shown); showAround(); } });

  for (const control of document.querySelectorAll("#actions [data-decide]")) control.addEventListener("click", () => decideChosen(control.dataset.decide));
  $("open-detail").addEventListener("click", openDetail);
  $("unselect").addEventListener("click", () => { grid.select([]); grid.focusHere(); });
  $("undo").addEventListener("click", () => turnBack("undo"));
  $("redo").addEventListener("click", () => turnBack("redo"));
  $("refresh").addEventListener("click", relist);
  $("all-classes").addEventListener("click", showAll);
  $("open-help").addEventListener("click", showHelp);
  startKeys({
    dialog: () => (detail.isOpen ? "detail" : $("help").open ? "help" : undefined),
    escape: () => { if (!closeDrawers() && grid.selected.size > 0) grid.select([]); active().focusHere(); },
    undo: () => turnBack("undo"),
    redo: () => turnBack("redo"),
    decide: decideChosen,
    similar: orderLike,
    selectAll: () => { if (!allAtOnce) grid.select(grid.rows); },
    move,
    open: openDetail,
    close: () => detail.close(),
    nextClass: goToNextClass,
    allClasses: showAll,
    refresh: relist,
    search: () => { $("tools").open = true; $("caption").focus(); },
    findClass: () => { if (getComputedStyle($("classes")).display === "none") $("open-classes").click(); $("find-class").focus(); },
    help: showHelp,
  });
  showStatus();
  followServer();
  await resume();
  loadCurve().catch(() => {}); // the events bring it later
};

start();
