// Decisions on their way: shown at once as being saved, as saved after the server's answer, taken back when it says no.

import { api, Refused } from "./api.js";
import { button, count, plural, say, setText, $ } from "./dom.js";
import { CODE, DECIDED, store } from "./store.js";

let queue = Promise.resolve(); // one after the other, in the order in which they were made
let waiting = 0;
let tickets = 0;

const status = $("status"), banner = $("banner");

export const showStatus = () => {
  const saving = waiting > 0;
  const n = store.session?.n_decisions ?? 0;
  status.dataset.state = saving ? "saving" : n > 0 ? "saved" : "none";
  setText(status, saving ? "Saving…" : n > 0 ? `Saved · ${plural(n, "decision")}` : "No decisions yet");
  $("undo").disabled = !saving && !(store.session?.n_undo > 0);
  $("redo").disabled = !(store.session?.n_redo > 0);
};

/** A message that stays until something better is known. */
export const complain = (text, ...actions) => {
  banner.replaceChildren(text, ...actions, button("Dismiss", () => { banner.hidden = true; }));
  banner.hidden = false;
};
const reason = (error) => (error instanceof Refused ? error.message : "the server does not answer");

const enqueue = (work) => {
  waiting += 1;
  showStatus();
  queue = queue.then(work).finally(() => { waiting -= 1; showStatus(); });
  return queue;
};

/** Decides rows of a class: `decision` is accept, reject, unsure or undecided. */
export const decide = (data, rows, decision) => {
  const ticket = tickets += 1;
  const c = data.class;
  for (const row of rows) data.pending.set(row, { code: CODE[decision], ticket });
  store.tell("rows", { class: c, rows });
  return enqueue(async () => {
    try {
      const answer = await api.decide(c, rows, decision);
      banner.hidden = true;
      store.saved(answer, data); // `data` may have been replaced since: its cards are still to show it
      store.settle(data, ticket);
      const { total, decided } = store.counted(c);
      const along = answer.changes.length - rows.length;
      say(`${DECIDED[CODE[decision]]}, saved${along > 0 ? `, with ${plural(along, "near-duplicate")}` : ""}. ${count(decided)} of ${count(total)} decided.`);
    } catch (error) {
      store.settle(data, ticket);
      const what = rows.length === 1 ? `“${data.text(rows[0]).slice(0, 80)}”` : plural(rows.length, "picture");
      complain(`Not saved: ${what} is not ${DECIDED[CODE[decision]]}, because ${reason(error)}. `,
        button("Try again", () => { banner.hidden = true; decide(data, rows, decision); }));
    }
  });
};

/** Undo or redo. Calls `went(class, row)` with the place. */
export const step = (which, went) => enqueue(async () => {
  try {
    const answer = await api[which]();
    store.saved(answer);
    say(`${which === "undo" ? "Undone" : "Done again"}, saved.`);
    went(answer.class, answer.changes[0]?.[0]);
  } catch (error) {
    if (error.status === 409) say(`Nothing to ${which}.`);
    else complain(`Could not ${which}: ${reason(error)}. `);
  }
});
