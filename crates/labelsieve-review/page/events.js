// What the server tells by itself: decisions of any tab, new relevance, the curve, λ.

import { complain } from "./decide.js";
import { say, $ } from "./dom.js";
import { showCurve, showSettings } from "./panel.js";
import { inView, place } from "./place.js";
import { store } from "./store.js";
import { follow } from "./stream.js";

/** The page does not wait longer for the events than this; when they come after all, it fetches everything again. */
const PATIENCE_MS = 2000;

/** Fetches the scores of a class that is on the screen. */
export const rescore = (c) => store.rescore(c).catch((error) => complain(`No new relevance: ${error.message}. `));

/**
 * Follows the events. The promise `listening` is kept as soon as they come, or if they do not: whatever is asked after that
 * misses nothing. `begin(started)` takes the promise of a page that can be shown things, and `reload()` fetches everything.
 */
export const followServer = (reload) => {
  let hasAsked = false;
  let listen, begin;
  const listening = new Promise((resolve) => { listen = () => { hasAsked = true; resolve(); }; });
  const started = new Promise((resolve) => { begin = resolve; });
  const whenStarted = (action) => (told) => started.then(() => { if (store.session) action(told); });
  setTimeout(listen, PATIENCE_MS);
  follow({
    decisions: (told) => store.saved(told),
    scoring: whenStarted(({ class: c }) => { if (c === place.class) $("heading").dataset.scoring = "yes"; }),
    scores: ({ class: c, revision }) => {
      if (c === place.class) delete $("heading").dataset.scoring;
      if (store.scored(c, revision) && inView().includes(c) && c !== place.opening) rescore(c).then(() => say("Relevance updated."));
    },
    curve: whenStarted(showCurve),
    lambda: whenStarted((told) => {
      store.setLambda(told);
      showSettings();
      for (const c of inView()) rescore(c);
    }),
    failed: whenStarted(({ message }) => complain(`Scoring failed: ${message}. `)),
    lost: () => {
      listen();
      $("status").dataset.lost = "yes";
      complain("The server does not answer. Decisions cannot be saved until it is back; this page tries again by itself. If it was stopped, start it again with the same command and open the address that it prints. ");
    },
    open: () => {
      if (!hasAsked) { listen(); return; }
      started.then(async () => {
        delete $("status").dataset.lost;
        $("banner").hidden = true;
        try {
          await reload();
          say("Connected again.");
        } catch (error) {
          complain(`Connected again, but ${error.message}. `);
        }
      });
    },
  });
  return { listening, begin };
};
