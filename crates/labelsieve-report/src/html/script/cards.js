// ---- one example as a card with its picture, or as a row without

const picture = (item) => {
  if (item.picture === undefined) return make("span", { class: "blank" }, nameOf(item));
  return make("img", { alt: "", decoding: "async", width: 96, height: 96 });
};
// A gallery may hold hundreds of pictures; each is decoded when it comes near the view.
const sourceOf = new Map(); // img -> data URI
const load = (image) => { image.src = sourceOf.get(image); sourceOf.delete(image); pictures.unobserve(image); };
const pictures = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting && sourceOf.has(target)) load(target);
}, { rootMargin: "600px 0px" });

const original = (item, text, attributes = {}) =>
  make("a", { href: item.address, target: "_blank", rel: "noopener noreferrer", class: "original", ...attributes }, text);
// Text for screen readers, for what others read off the layout.
const heard = (text) => make("span", { class: "sr" }, text);
const truthMark = (item) =>
  make("span", { class: `mark ${item.truth === "relevant" ? "yes" : "no"}` }, item.truth === "relevant" ? "✓" : "✗", heard(` ${item.truth} `));
const decisionMark = (item) => make("span", { class: `decision ${item.decision}` }, item.decision);
const relevanceOf = (item) => make("b", {}, heard(" relevance "), item.relevance);
const rankOf = (item) => make("span", { class: "rank" }, heard(" rank "), `#${grouped(item.rank)}`);
const bar = (item) => {
  const fill = make("i");
  fill.style.width = `${100 * Number(item.relevance)}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, fill);
};

const card = (item) => {
  const image = picture(item);
  if (item.picture !== undefined) { sourceOf.set(image, item.picture); pictures.observe(image); }
  const button = make("button", { type: "button", class: `item thumb ${item.truth}` }, image);
  if (item.truth) button.append(truthMark(item));
  if (item.decision) button.append(decisionMark(item));
  if (item.relevance) button.append(bar(item), make("span", { class: "numbers" }, relevanceOf(item), rankOf(item)));
  else button.append(heard(" clean example "));
  if (item.picture !== undefined) button.append(item.caption ? make("span", { class: "caption" }, item.caption) : heard(item.id));
  const entry = make("li", {}, button);
  // The keyboard reaches it through the dialog: a second tab stop on every card would be tedious.
  if (item.address) entry.append(original(item, "↗", { tabindex: "-1", "aria-label": `original of ${nameOf(item)}`, title: "open the original" }));
  return { entry, button };
};

const row = (item) => {
  const button = make("button", { type: "button", class: "item row" }, rankOf(item), relevanceOf(item), bar(item));
  const marks = make("span", { class: "marks" });
  if (item.truth) marks.append(truthMark(item));
  if (item.decision) marks.append(decisionMark(item));
  button.append(marks, make("span", { class: "words" }, nameOf(item)));
  if (item.caption) button.append(make("span", { class: "id" }, item.id));
  const entry = make("li", {}, button);
  if (item.address) entry.append(original(item, "original", { "aria-label": `original of ${nameOf(item)}` }));
  return { entry, button };
};
