// Which key does what. Keys with a letter work wherever no text is being written.

const DECISIONS = { a: "accept", r: "reject", u: "unsure", backspace: "undecided", delete: "undecided" };
const MOVES = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

const writes = (target) => target.matches("input:not([type=range]):not([type=checkbox]), textarea, select");
/** Controls keep their own keys: arrows on a slider, Enter on a button. */
const controls = (target) => target.closest("button, input, select, summary, a, pre, [role=region], #class-list") !== null;

/** `on` has one action per meaning; `on.dialog()` says which dialog is open: "detail", "help" or nothing. */
export const startKeys = (on) => {
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    const dialog = on.dialog();
    if (dialog === "help") return;
    if (event.key === "Escape" && !dialog) { on.escape(); return; }
    if (writes(target)) return;
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    const done = (action) => { event.preventDefault(); action(); };
    if (key === "z" && !event.altKey) return done(event.shiftKey ? on.redo : on.undo);
    if (command && key === "y") return done(on.redo);
    if (command && key === "a" && !dialog) return done(on.selectAll);
    if (command || event.altKey) return;
    if (key in DECISIONS && !event.repeat) return done(() => on.decide(DECISIONS[key]));
    if (key === "s" && !event.shiftKey) return done(on.similar);
    if (MOVES.has(event.key) && !controls(target)) return done(() => on.move(event.key, event.shiftKey));
    if (dialog) {
      if ((event.key === "Enter" || event.key === " ") && !controls(target)) return done(on.close);
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") return done(() => on.move(event.key, false));
      return;
    }
    if ((event.key === "Enter" || event.key === " ") && !controls(target)) return done(on.open);
    if (key === "n") return done(on.nextClass);
    if (key === "c") return done(on.allClasses);
    if (key === "o") return done(on.refresh);
    if (key === "f") return done(on.findClass);
    if (event.key === "/") return done(on.search);
    if (event.key === "?") return done(on.help);
  });
};
