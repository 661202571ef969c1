// ---- arrow keys inside a list, and from one chunk of rows to the next

const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };
const besides = (list, step) => {
  const sibling = step > 0 ? list.nextElementSibling : list.previousElementSibling;
  return sibling?.classList.contains("waiting") ? reveal(sibling) : sibling;
};
const move = (button, key) => {
  const list = button.closest("ol");
  const all = [...list.querySelectorAll(".item")];
  const here = all.indexOf(button);
  const isRow = list.classList.contains("rows");
  const perLine = isRow ? 1 : all.filter((other) => other.offsetTop === all[0].offsetTop).length;
  const lines = key === "ArrowUp" || key === "ArrowDown" ? perLine : 1;
  const to = { Home: 0, End: all.length - 1 }[key] ?? here + STEPS[key] * lines;
  if (Number.isNaN(to)) return null;
  if (isRow && (to < 0 || to >= all.length)) {
    const next = besides(list, STEPS[key])?.querySelectorAll(".item");
    return next?.[to < 0 ? next.length - 1 : 0] ?? null;
  }
  return all[to] ?? null;
};
const focusOn = (button) => {
  for (const other of button.closest("ol").querySelectorAll(".item[tabindex='0']")) other.tabIndex = -1;
  button.tabIndex = 0;
  button.focus();
};
classList?.addEventListener("keydown", (event) => {
  const button = event.target.closest(".item");
  const next = button && move(button, event.key);
  if (next) { event.preventDefault(); focusOn(next); }
});
