// The list of candidates that is shown: made when a class is opened, and again when order, filter or relevance change.

import { api } from "./api.js";
import { showAround } from "./around.js";
import { classList } from "./classlist.js";
import { view } from "./controls.js";
import { complain } from "./decide.js";
import { $ } from "./dom.js";
import { grid } from "./grid.js";
import { rowsOf } from "./order.js";
import { showKept } from "./panel.js";
import { place } from "./place.js";
import { UNDECIDED, store } from "./store.js";
import { strips } from "./strips.js";

/** Candidates of a class and the rows to show, by the order and the filters chosen. */
export const rowsFor = async (c, signal) => {
  const data = await store.load(c);
  if (view.caption !== "") await data.fold();
  const similar = view.order === "similar" && c === place.class ? (await api.similar(c, view.similar)).rows : null;
  const next = view.order === "next" || (view.order === "similar" && !similar) ? await store.loadNext(data, signal) : [];
  return { data, rows: rowsOf(data, view, next, similar && Uint32Array.from(similar)) };
};

/** Updates the list. Another order starts at its top; otherwise the card under the eye stays. */
export const relist = async ({ fromTop = false } = {}) => {
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
export const rescored = async (c) => {
  if (c !== place.class || place.allAtOnce) return;
  showKept(grid.data);
  const { untouched } = grid;
  if (!untouched) $("refresh").hidden = false;
  if (view.order !== "next" && !untouched) return;
  try {
    const { data, rows } = await rowsFor(c);
    if (c === place.class && data === grid.data) { grid.reorderBelow(rows); showAround(); }
  } catch (error) {
    complain(`Could not sort: ${error.message}. `);
  }
};
