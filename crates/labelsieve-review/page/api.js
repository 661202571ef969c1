// What the server is asked. All addresses are relative to the page's own, which holds the token.

const TIMEOUT_MS = 60_000;

/** An answer that says no, in the server's words. */
export class Refused extends Error {
  constructor(status, { error, hint } = {}) {
    super([error ?? `the server answered ${status}`, hint].filter(Boolean).join("; "));
    this.status = status;
  }
}

const ask = async (path, options = {}) => {
  const answer = await fetch(path, { cache: "no-store", ...options });
  if (answer.ok) return answer.json();
  throw new Refused(answer.status, await answer.json().catch(() => ({})));
};
const post = (path, body) => ask(path, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: body === undefined ? undefined : JSON.stringify(body),
  signal: AbortSignal.timeout(TIMEOUT_MS),
});

export const api = {
  session: () => ask("api/session"),
  curve: () => ask("api/curve"),
  classOf: (c) => ask(`api/classes/${c}`),
  scores: (c) => ask(`api/classes/${c}/scores`),
  next: (c, signal) => ask(`api/classes/${c}/order?by=next`, { signal }),
  similar: (c, row) => ask(`api/classes/${c}/order?by=similar&to=${row}`),
  row: (c, row, signal) => ask(`api/classes/${c}/rows/${row}`, { signal }),
  decide: (c, rows, decision) => post("api/decisions", { class: c, rows, decision }),
  undo: () => post("api/undo"),
  redo: () => post("api/redo"),
  lambda: (lambda) => post("api/lambda", { lambda }),
};

const EVENTS = ["decisions", "scoring", "scores", "curve", "lambda", "failed"];
const RETRY_MS = [500, 1000, 2000, 5000];

/**
 * Follows the server's events: `on[name](data)`, `on.open()` whenever they begin to come, `on.lost()` when the connection breaks.
 */
export const follow = (on) => {
  let failures = 0;
  const connect = () => {
    const source = new EventSource("api/events");
    source.addEventListener("open", () => { failures = 0; on.open(); });
    source.addEventListener("error", () => {
      source.close(); // the browser's own retries give up for good on some errors
      if (failures === 0) on.lost();
      setTimeout(connect, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]);
      failures += 1;
    });
    for (const name of EVENTS) source.addEventListener(name, (event) => on[name](JSON.parse(event.data)));
  };
  connect();
};
