// The overlay on `?`.

import { button, make, $ } from "./dom.js";

const KEYS = [
  ["Decide", [["A", "accept"], ["R", "reject"], ["U", "unsure"], ["Backspace", "clear the decision"], ["Z, Ctrl+Z", "undo"], ["Shift+Z, Ctrl+Shift+Z", "redo"]]],
  ["Move", [["← → ↑ ↓", "to the next card"], ["Page up/down, Home, End", "further"], ["Enter, Space", "open the picture; Escape closes it"], ["N", "next class with something undecided"], ["C", "all classes at once, and back"]]],
  ["Select", [["Shift+arrows, Shift+click", "a range"], ["drag a rectangle", "everything in it"], ["Ctrl+click, long press", "one more"], ["Ctrl+A", "everything listed"], ["Escape", "clear the selection"]]],
  ["Find and sort", [["/", "search captions, or ids where there are none"], ["F", "find a class"], ["O", "sort again with the new relevance"], ["S", "order by similarity to this picture"], ["?", "this help"]]],
];

export const showHelp = () => {
  const dialog = $("help");
  const section = ([title, keys]) => make("section", {}, make("h3", {}, title),
    make("dl", {}, ...keys.map(([key, what]) => make("div", {}, make("dt", {}, ...key.split(", ").flatMap((one, at) => [at > 0 ? " " : "", make("kbd", {}, one)])), make("dd", {}, what)))));
  dialog.replaceChildren(
    make("h2", { id: "help-h" }, "How to review"),
    make("p", {}, "Look at a picture, decide whether it belongs to the class, and the focus moves on by itself. The class is scored again after each decision. The default order shows what a few decisions gain most from; near-duplicates are decided together."),
    make("div", { class: "keys" }, ...KEYS.map(section)),
    make("p", { class: "controls" }, button("Close", () => dialog.close())));
  dialog.showModal();
};
