// ---- lists of examples: cards in steps, rows a hundred at a time when they come near

const STEP = 200;
const CHUNK = 100;
const placeOf = new WeakMap(); // button -> { article, kind, at }
const buttonsOf = new WeakMap(); // article -> { clean, ranked }: maps from places to buttons

const fill = (list, article, kind, places, entryOf) => {
  for (const at of places) {
    const { entry, button } = entryOf(itemOf(article, kind, at));
    button.tabIndex = list.childElementCount === 0 ? 0 : -1; // one stop per list; arrows move inside
    placeOf.set(button, { article, kind, at });
    buttonsOf.get(article)[kind].set(at, button);
    list.append(entry);
  }
  return list;
};

const unfinished = new Map(); // button that adds cards -> how to add all that are left
const cards = (article, kind, title, places) => {
  const list = make("ol", { class: "thumbs", role: "list", "aria-label": title });
  const box = make("div", {}, list);
  const button = make("button", { type: "button", class: "more" });
  const add = (most) => {
    const start = list.childElementCount;
    fill(list, article, kind, places.slice(start, start + most), card);
    const left = places.length - list.childElementCount;
    if (left === 0) { unfinished.delete(button); button.remove(); return start; }
    button.textContent = `Show ${grouped(Math.min(STEP, left))} more of ${grouped(left)}`;
    return start;
  };
  add(STEP);
  if (list.childElementCount < places.length) {
    box.append(button);
    unfinished.set(button, () => add(places.length));
    button.addEventListener("click", () => list.children[add(STEP)].querySelector(".item").focus());
  }
  return box;
};

const waiting = new WeakMap(); // placeholder -> how to make the list that takes its place
const reveal = (placeholder) => {
  const list = waiting.get(placeholder)();
  nearby.unobserve(placeholder);
  placeholder.replaceWith(list);
  return list;
};
const nearby = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting && target.isConnected) reveal(target);
}, { rootMargin: "800px 0px" });

const rows = (article, places) => {
  const chunks = make("div", { class: "chunks" });
  for (let start = 0; start < places.length; start += CHUNK) {
    const part = places.slice(start, start + CHUNK);
    const placeholder = make("div", { class: "waiting" });
    placeholder.style.setProperty("--rows", part.length);
    const title = `Ranks ${grouped(part[0] + 1)} to ${grouped(part[part.length - 1] + 1)}`;
    waiting.set(placeholder, () =>
      fill(make("ol", { class: "rows", role: "list", "aria-label": title }), article, "ranked", part, row));
    chunks.append(placeholder);
    nearby.observe(placeholder);
  }
  return chunks;
};

// Rows behind a button: they may be tens of thousands, with the next class below them.
const foldedRows = (article, places, title) => {
  const button = make("button", { type: "button", class: "more", "aria-expanded": "false" }, `Show ${title}`);
  const box = make("div", { class: "gap" }, button);
  button.addEventListener("click", () => {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    button.textContent = `${isOpen ? "Show" : "Hide"} ${title}`;
    if (isOpen) { button.nextElementSibling.remove(); return; }
    const chunks = rows(article, places);
    button.after(chunks);
    reveal(chunks.firstElementChild); // at once, for a Tab that follows
  });
  return box;
};
