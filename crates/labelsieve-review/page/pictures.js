// Pictures in the detail view: full size, and small ones beside a text. What cannot be shown says why.

import { make } from "./dom.js";
import { NOT_LOADED, REASONS, UNDECODABLE, want } from "./thumbnails.js";

const TEXT = "text:"; // ids of class texts: `labelsieve embed-text`
const blank = (text, name) => make("span", { class: `blank ${name}` }, text);

/** The original of an example; `alt` is what it shows. Calls `missing()` when the server has no such picture. */
export const fullPicture = (example, alt, missing) => {
  const frame = make("div", { class: "full" });
  const image = make("img", { alt, src: `pictures/${example}`, decoding: "async" });
  image.addEventListener("load", () => {
    // Upright compared with the frame, which is wider than high on a desk.
    image.style.aspectRatio = `${image.naturalWidth} / ${image.naturalHeight}`;
    image.classList.toggle("upright", image.naturalWidth / image.naturalHeight < frame.clientWidth / frame.clientHeight);
  });
  image.addEventListener("error", async () => {
    const status = await fetch(`pictures/${example}`, { method: "HEAD" }).then((answer) => answer.status, () => 0);
    if (status in REASONS) missing();
    // A picture that arrives and is not shown is one that this browser cannot read.
    frame.replaceChildren(blank(status === 200 ? UNDECODABLE : REASONS[status] ?? NOT_LOADED, "large"));
  });
  frame.append(image);
  return frame;
};

/** A small picture; without `alt` a text stands beside it. */
export const smallPicture = (example, alt = "") => {
  const image = make("img", { alt, class: "small", decoding: "async" });
  let shown = image;
  want(image, example, (text) => { // told at once where it is known: before the picture stands anywhere
    shown = blank(text, "small");
    image.replaceWith(shown);
  });
  return shown;
};

/** A clean example, small; the text of a class has no picture to ask for. */
export const cleanPicture = ({ example, id }, alt) => id.startsWith(TEXT) ? blank("text", "small") : smallPicture(example, alt);
export const cleanName = ({ id, caption }) => id.startsWith(TEXT) ? "the text of the name" : caption ?? id;
