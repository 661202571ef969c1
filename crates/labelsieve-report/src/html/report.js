"use strict";
// Everything here adds to a page that is complete without it, except for the galleries, which are built when they come
// into view: thousands of pictures would take seconds at once. No markup is ever made from text.

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// ---- theme

const themeButton = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefersDark.matches;
};
const showTheme = () => {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
};
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("labelsieve-theme", theme); } catch { /* for this view only, then */ }
  showTheme();
});
prefersDark.addEventListener("change", showTheme);
showTheme();

// ---- sortable tables

const valueOf = (row, column) => {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.textContent.trim();
};
// Numbers before texts before nothing, whichever way the rest goes.
const kindOf = (value) => (typeof value === "number" ? 0 : value === "" ? 2 : 1);
const compare = (a, b, direction) => {
  if (kindOf(a) !== kindOf(b)) return kindOf(a) - kindOf(b);
  if (typeof a === "number") return direction * (a - b);
  return direction * a.localeCompare(b, undefined, { numeric: true });
};
const sortTable = (table, heading, column) => {
  const before = heading.getAttribute("aria-sort");
  const numeric = column > 0 && table.querySelector(`tbody tr :nth-child(${column + 1})[data-value]`) !== null;
  const first = numeric ? "descending" : "ascending";
  const second = numeric ? "ascending" : "descending";
  const order = before === first ? second : first;
  for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", order);
  const direction = order === "ascending" ? 1 : -1;
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
    rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), direction));
    body.append(...rows);
  }
};
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = table.tHead.rows[table.tHead.rows.length - 1].cells;
  [...headings].forEach((heading, column) => {
    const button = make("button", { type: "button" });
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortTable(table, heading, column));
  });
}

// ---- galleries

const dataOf = new WeakMap(); // article -> lists of items
const truthText = (item) => (item.t === undefined ? "" : item.t ? "relevant" : "irrelevant");
const nameOf = (item) => item.title || item.id;
const labelOf = (item) =>
  [item.k && `rank ${item.k}`, item.r && `relevance ${item.r}`, !item.r && "clean example", truthText(item), nameOf(item)]
    .filter(Boolean).join(", ");

const picture = (item) => {
  if (item.p === undefined) return make("span", { class: "blank", "aria-hidden": "true" }, nameOf(item));
  return make("img", { alt: "", decoding: "async", width: 96, height: 96 });
};
// A gallery may hold hundreds of pictures; each is decoded when it comes near itself.
const sourceOf = new WeakMap(); // img -> data URI
const pictures = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) { target.src = sourceOf.get(target); pictures.unobserve(target); }
  }
}, { rootMargin: "600px 0px" });
const later = (image, source) => {
  if (source !== undefined) { sourceOf.set(image, source); pictures.observe(image); }
  return image;
};
const mark = (item) => make("span", { class: `mark ${item.t ? "yes" : "no"}`, "aria-hidden": "true" }, item.t ? "✓" : "✗");
const thumb = (item, position) => {
  const button = make("button", { type: "button", class: `thumb ${truthText(item)}`, "aria-label": labelOf(item) }, later(picture(item), item.p));
  button.tabIndex = position === 0 ? 0 : -1;
  if (item.t !== undefined) button.append(mark(item));
  if (item.title) button.append(make("span", { class: "caption" }, item.title));
  if (item.r !== undefined) {
    const level = make("i");
    level.style.width = `${100 * Number(item.r)}%`;
    button.append(
      make("span", { class: "bar" }, level),
      make("span", { class: "numbers" }, make("b", {}, item.r), make("span", {}, `#${item.k.toLocaleString("en")}`)),
    );
  }
  return make("li", {}, button);
};
const build = (article) => {
  if (dataOf.has(article)) return;
  const { lists } = JSON.parse(article.querySelector("script").textContent);
  dataOf.set(article, lists);
  const gallery = article.querySelector(".gallery");
  for (const list of lists) {
    const items = make("ol", { class: "thumbs", role: "list", "aria-label": list.title }, ...list.items.map(thumb));
    gallery.append(make("h4", {}, list.title), items);
  }
};
const articles = [...document.querySelectorAll("article.class")];
const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) { build(target); observer.unobserve(target); }
  }
}, { rootMargin: "400px 0px" });
articles.forEach((article) => observer.observe(article));

const itemOf = (button) => {
  const article = button.closest("article");
  const lists = [...article.querySelectorAll(".thumbs")];
  const list = button.closest(".thumbs");
  const position = [...list.children].indexOf(button.parentElement);
  return { item: dataOf.get(article)[lists.indexOf(list)].items[position], article };
};

// One tab stop per list; arrows move inside.
const move = (button, key) => {
  const all = [...button.closest(".thumbs").querySelectorAll(".thumb")];
  const here = all.indexOf(button);
  const perRow = all.filter((other) => other.offsetTop === all[0].offsetTop).length;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -perRow, ArrowDown: perRow, Home: -here, End: all.length - 1 - here };
  const next = all[here + steps[key]];
  if (steps[key] === undefined || next === undefined) return null;
  button.tabIndex = -1;
  next.tabIndex = 0;
  return next;
};
const classList = document.getElementById("class-list");
classList?.addEventListener("keydown", (event) => {
  const button = event.target.closest(".thumb");
  const next = button && move(button, event.key);
  if (next) { event.preventDefault(); next.focus(); }
});

// ---- one example at a time

const dialog = document.getElementById("detail");
let shown = null;
const show = (button) => {
  shown = button;
  const { item, article } = itemOf(button);
  const facts = make("dl");
  const fact = (name, value) => { if (value !== undefined && value !== "") facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value))); };
  fact("class", article.dataset.name);
  fact("relevance", item.r ?? "1 (clean example)");
  fact("rank", item.k?.toLocaleString("en"));
  fact("truth", truthText(item));
  fact("caption", item.title);
  fact("found by", item.name);
  fact("id", item.id);
  fact("reciprocal neighbours", item.nn?.toString());
  const best = dataOf.get(article).flatMap((list) => list.items).find((other) => other.id === item.best && other.r === undefined);
  if (item.best !== undefined) {
    const value = make("span", {}, `${best ? nameOf(best) : item.best}${item.sim ? `, similarity ${item.sim}` : ""}`);
    if (best?.p) value.append(make("img", { src: best.p, alt: "", class: "small" }));
    fact("closest clean example", value);
  }
  const step = (name, key) => {
    const control = make("button", { type: "button" }, name);
    control.addEventListener("click", () => { const next = move(shown, key); if (next) show(next); });
    return control;
  };
  const large = picture(item);
  if (item.p !== undefined) large.src = item.p;
  const close = make("button", { type: "button" }, "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(
    make("h2", { id: "detail-h" }, nameOf(item)),
    make("div", { class: "detail" }, large, facts),
    make("p", { class: "controls" }, step("Previous", "ArrowLeft"), step("Next", "ArrowRight"), close),
  );
  if (!dialog.open) dialog.showModal();
};
classList?.addEventListener("click", (event) => {
  const button = event.target.closest(".thumb");
  if (button) show(button);
});
dialog?.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  const next = move(shown, event.key);
  if (next) { event.preventDefault(); show(next); }
});
dialog?.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog?.addEventListener("close", () => shown?.focus());

// ---- finding and ordering classes

const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const search = document.getElementById("search");
const filter = () => {
  const words = folded(search.value).split(/\s+/).filter(Boolean);
  let left = 0;
  for (const article of articles) {
    const name = folded(article.dataset.name);
    article.hidden = !words.every((word) => name.includes(word));
    if (!article.hidden) left += 1;
  }
  const count = document.getElementById("count");
  count.textContent = left === articles.length ? `${left} classes` : `${left} of ${articles.length} classes`;
};
search?.addEventListener("input", filter);

const number = (article, key, missing) => (article.dataset[key] === undefined ? missing : Number(article.dataset[key]));
const orders = {
  name: () => 0,
  n: (a, b) => number(b, "n", 0) - number(a, "n", 0),
  low: (a, b) => number(a, "mean", 2) - number(b, "mean", 2),
  high: (a, b) => number(b, "mean", -1) - number(a, "mean", -1),
  auc: (a, b) => number(a, "auc", 2) - number(b, "auc", 2),
};
document.getElementById("order")?.addEventListener("change", (event) => {
  classList.append(...[...articles].sort(orders[event.target.value])); // stable: by name within equals
});
if (search?.value) filter(); // the browser may have kept it over a reload
