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
