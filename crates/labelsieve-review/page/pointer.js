// Mouse, pen and finger on the grid: click, range, lasso, long press.

import { make } from "./dom.js";

const DRAG_PX = 6;
const LONG_PRESS_MS = 450;
const EDGE_PX = 48; // from the upper and lower edge, where a lasso scrolls
const EDGE_SPEED = 18; // pixels per frame

/** `on.open()` opens the focused card, `on.decide(row, decision)` decides one. */
export const listen = (grid, on) => {
  const { scroller, list } = grid;
  let press = null; // where the pointer went down
  let suppressClick = false;
  let timer = 0;

  const inCanvas = (event) => {
    const box = list.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  // ---- lasso

  const frame = make("div", { class: "lasso", hidden: "" });
  list.parentElement.append(frame);
  let lasso = null;
  const drawLasso = () => {
    const at = inCanvas(lasso.event);
    const [x0, x1] = [Math.min(lasso.from.x, at.x), Math.max(lasso.from.x, at.x)];
    const [y0, y1] = [Math.min(lasso.from.y, at.y), Math.max(lasso.from.y, at.y)];
    frame.style.transform = `translate(${x0 + list.offsetLeft}px, ${y0 + list.offsetTop}px)`;
    frame.style.width = `${x1 - x0}px`;
    frame.style.height = `${y1 - y0}px`;
    const { columns, itemWidth, itemHeight, pitch, gap } = grid.window;
    const across = itemWidth + gap;
    const firstColumn = Math.max(0, Math.ceil((x0 - itemWidth) / across)), lastColumn = Math.min(columns - 1, Math.floor(x1 / across));
    const firstLine = Math.max(0, Math.ceil((y0 - itemHeight) / pitch)), lastLine = Math.floor(y1 / pitch);
    const rows = new Set(lasso.added);
    for (let line = firstLine; line <= lastLine; line += 1) {
      for (let column = firstColumn; column <= lastColumn; column += 1) {
        const index = line * columns + column;
        if (index < grid.rows.length) rows.add(grid.rows[index]);
      }
    }
    grid.select(rows);
  };
  const scrollLasso = () => {
    if (!lasso) return;
    const box = scroller.getBoundingClientRect();
    const { clientY } = lasso.event;
    const speed = clientY < box.top + EDGE_PX ? -EDGE_SPEED : clientY > box.bottom - EDGE_PX ? EDGE_SPEED : 0;
    if (speed !== 0) { scroller.scrollTop += speed; drawLasso(); }
    requestAnimationFrame(scrollLasso);
  };
  const startLasso = (event) => {
    lasso = { from: press.at, event, added: event.ctrlKey || event.metaKey || event.shiftKey ? [...grid.selected] : [] };
    scroller.setPointerCapture(event.pointerId);
    frame.hidden = false;
    requestAnimationFrame(scrollLasso);
  };
  const endLasso = () => {
    lasso = null;
    frame.hidden = true;
  };

  // ---- the pointer

  const longPress = (card) => {
    suppressClick = true;
    grid.toggle(card.row);
    navigator.vibrate?.(10);
  };
  scroller.addEventListener("pointerdown", (event) => {
    suppressClick = false;
    if (event.button !== 0) return;
    if (event.clientX > scroller.getBoundingClientRect().left + scroller.clientWidth) return; // on the scroll bar
    press = { x: event.clientX, y: event.clientY, at: inCanvas(event) };
    const card = event.target.closest(".card");
    if (event.pointerType !== "mouse" && card) timer = setTimeout(() => longPress(card), LONG_PRESS_MS);
  });
  scroller.addEventListener("pointermove", (event) => {
    if (!press) return;
    const far = Math.hypot(event.clientX - press.x, event.clientY - press.y) > DRAG_PX;
    if (far) clearTimeout(timer);
    if (event.pointerType !== "mouse" || !(event.buttons & 1)) return; // a finger scrolls
    if (!lasso && far) startLasso(event);
    if (lasso) { lasso.event = event; drawLasso(); }
  });
  const up = () => {
    clearTimeout(timer);
    if (lasso) { suppressClick = true; endLasso(); }
    press = null;
  };
  scroller.addEventListener("pointerup", up);
  scroller.addEventListener("pointercancel", up);
  // A click moves the focus itself, as the kind of click wants it.
  scroller.addEventListener("mousedown", (event) => { if (event.target !== scroller) event.preventDefault(); });
  scroller.addEventListener("dragstart", (event) => event.preventDefault());
  scroller.addEventListener("contextmenu", (event) => { if (suppressClick) event.preventDefault(); }); // a long press is not one

  scroller.addEventListener("click", (event) => {
    if (suppressClick) { suppressClick = false; return; }
    const card = event.target.closest(".card");
    if (!card) { if (grid.selected.size > 0) grid.select([]); grid.focusHere(); return; }
    const selects = event.shiftKey || event.ctrlKey || event.metaKey; // wherever on the card
    const quick = selects ? null : event.target.closest("[data-quick]");
    if (quick) { on.decide(card.row, quick.dataset.quick); return; }
    const index = grid.place(card.row);
    if (event.shiftKey) grid.focus(index, { extend: true });
    else if (event.ctrlKey || event.metaKey || (event.pointerType === "touch" && grid.selected.size > 0)) {
      grid.focus(index, { keep: true });
      grid.toggle(card.row);
    } else if (isSecondClick(card)) on.open();
    else grid.focus(index);
  });

  // A first click moves the focus, a second one on the same card opens it.
  let last = null;
  const isSecondClick = (card) => {
    const again = last === card.row && grid.row === card.row && grid.selected.size === 0;
    last = card.row;
    return again;
  };
};
