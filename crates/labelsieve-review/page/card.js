// One candidate: thumbnail, caption, relevance, decision. Cards are used again and again for other candidates.

import { make, reducedMotion, setText } from "./dom.js";
import { ACCEPT, DECIDED, REJECT, UNDECIDED } from "./store.js";
import { drop, UNDECODABLE, want } from "./thumbnails.js";

export const MARKS = ["", "✓", "✗", "?"];
const LOOKS = ["", "accepted", "rejected", "unsure"];
/** Changes of relevance below this are not worth a person's eye. */
const NOTABLE = 0.005;
const MOVE_MS = 400;

export const createCard = () => {
  const parts = {
    image: make("img", { alt: "", draggable: "false", decoding: "async" }),
    blank: make("span", { class: "blank", hidden: "" }),
    mark: make("span", { class: "mark", hidden: "", "aria-hidden": "true" }),
    along: make("span", { class: "along", hidden: "", "aria-hidden": "true" }),
    caption: make("span", { class: "caption" }),
    level: make("i"),
    value: make("b"),
    change: make("span", { class: "change" }),
    name: make("span", { class: "name" }),
    told: make("span", { class: "sr" }),
  };
  // For the mouse only; keys and the toolbar decide as well, and a button within an option could not be reached anyway.
  const quick = make("span", { class: "quick", "aria-hidden": "true" },
    make("span", { class: "yes", "data-quick": "accept", "data-text": MARKS[1], title: "Accept (A)" }),
    make("span", { class: "no", "data-quick": "reject", "data-text": MARKS[2], title: "Reject (R)" }),
    make("span", { "data-quick": "unsure", "data-text": MARKS[3], title: "Unsure (U)" }));
  const card = make("div", { class: "card", role: "option", tabindex: "-1", "aria-selected": "false" },
    make("span", { class: "picture" }, parts.image, parts.blank, parts.mark, parts.along, quick),
    parts.caption,
    make("span", { class: "bar" }, parts.level),
    make("span", { class: "numbers" }, make("span", { class: "sr" }, " relevance "), parts.value, " ", parts.change, " ", parts.name, parts.told));
  card.parts = parts;
  // Its white ground, for transparent pictures, is to end where the picture ends.
  parts.image.addEventListener("load", () => parts.image.classList.toggle("upright", parts.image.naturalHeight > parts.image.naturalWidth));
  parts.image.addEventListener("error", () => { if (parts.image.hasAttribute("src")) showBlank(card, UNDECODABLE); });
  return card;
};

const showBlank = (card, text) => {
  card.parts.image.hidden = true;
  card.parts.blank.hidden = false;
  setText(card.parts.blank, text);
};

/**
 * What a screen reader says after caption and relevance. The name of a card is its content, so that both say the same; what
 * only signs say to the eye stands in the stylesheet.
 */
const toldOf = (data, row, decided, others) => [
  others > 0 ? `, with ${others} near-duplicate${others === 1 ? "" : "s"}` : "",
  `, ${DECIDED[decided]}`,
  data.pending.has(row) ? ", being saved" : "",
].join("");

/** Shows a candidate that this card did not show before. */
export const fillCard = (card, data, row, threshold) => {
  card.data = data;
  card.row = row;
  const { image, blank, caption, name } = card.parts;
  image.hidden = false;
  blank.hidden = true;
  want(image, data.example[row], (text) => { if (card.row === row && card.data === data) showBlank(card, text); });
  setText(caption, data.text(row));
  setText(name, data.name[row] >= 0 && data.names.length > 1 ? data.names[data.name[row]] : "");
  card.level = undefined;
  refreshCard(card, threshold);
};

/** Updates decision and relevance; a bar that was on the screen moves to its new length. */
export const refreshCard = (card, threshold) => {
  const { data, row } = card;
  const { mark, along, level, value, change, told } = card.parts;
  const decided = data.decided(row);
  const relevance = data.relevance[row];
  card.classList.toggle("below", relevance < Math.fround(threshold) && decided !== ACCEPT);
  for (const code of [1, 2, 3]) card.classList.toggle(LOOKS[code], decided === code);
  card.classList.toggle("saving", data.pending.has(row));
  mark.hidden = decided === UNDECIDED;
  mark.dataset.text = MARKS[decided];
  mark.classList.toggle("no", decided === REJECT);
  mark.classList.toggle("unsure", decided === 3);
  if (card.level !== relevance) {
    const scale = `scaleX(${relevance})`;
    if (card.level !== undefined && !reducedMotion.matches) {
      level.animate([{ transform: `scaleX(${card.level})` }, { transform: scale }], { duration: MOVE_MS, easing: "ease-out" });
    }
    level.style.transform = scale;
    card.level = relevance;
  }
  setText(value, relevance.toFixed(2));
  const moved = decided === UNDECIDED || decided === 3 ? relevance - data.before[row] : 0;
  setText(change, Math.abs(moved) < NOTABLE ? "" : `${moved > 0 ? "+" : "−"}${Math.abs(moved).toFixed(2)}`);
  change.classList.toggle("down", moved < 0);
  const others = data.duplicates(row);
  along.hidden = others === 0;
  if (others > 0) along.dataset.text = `+${others} near-duplicate${others === 1 ? "" : "s"}`;
  setText(told, toldOf(data, row, decided, others));
};

/** The card goes back to the pool. */
export const emptyCard = (card) => {
  drop(card.parts.image);
  card.row = -1;
  card.data = null;
};
