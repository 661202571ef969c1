// Thumbnails are fetched when their cards have stayed near for a moment, a few at a time, and given up when they leave:
// scrolling through 100,000 candidates does not wait for those that left the view.

const AT_ONCE = 5; // the browser allows six connections to one host, and the events hold one
const SETTLE_MS = 60;
const KEPT = 800;

const MISSING = "no picture";
export const UNDECODABLE = "picture cannot be decoded";
export const NOT_LOADED = "picture not loaded";
/** Why there is no picture, by the server's status; what is not here may be different the next time. */
export const REASONS = { 404: MISSING, 415: UNDECODABLE };

const addresses = new Map(); // example -> blob address, least recently used first
const failures = new Map(); // example -> why there is none
const wanted = new Map(); // img -> {example, show}
const running = new Map(); // img -> AbortController
let timer = 0;

/** Shows example's thumbnail in `img`; calls `failed(text)` when there is none. */
export const want = (img, example, failed) => {
  drop(img);
  const known = addresses.get(example);
  if (known) {
    addresses.delete(example);
    addresses.set(example, known);
    img.src = known;
    return;
  }
  if (failures.has(example)) { failed(failures.get(example)); return; }
  wanted.set(img, { example, failed });
  schedule();
};

/** The card has left or shows something else. */
export const drop = (img) => {
  wanted.delete(img);
  running.get(img)?.abort();
  running.delete(img);
  img.removeAttribute("src");
};

/** After a lost connection: what failed may be there now. */
export const retryAll = () => failures.clear();

const schedule = () => {
  clearTimeout(timer);
  timer = setTimeout(start, SETTLE_MS);
};
const start = () => {
  for (const [img, { example, failed }] of wanted) {
    if (running.size >= AT_ONCE) return;
    wanted.delete(img);
    fetchInto(img, example, failed);
  }
};
const fetchInto = async (img, example, failed) => {
  const control = new AbortController();
  running.set(img, control);
  try {
    const answer = await fetch(`thumbnails/${example}`, { signal: control.signal });
    if (answer.ok) {
      const address = addresses.get(example) ?? URL.createObjectURL(await answer.blob());
      keep(example, address);
      if (running.get(img) === control) img.src = address;
    } else {
      const reason = REASONS[answer.status];
      if (reason) failures.set(example, reason);
      if (running.get(img) === control) failed(reason ?? NOT_LOADED);
    }
  } catch (error) {
    if (error.name !== "AbortError" && running.get(img) === control) failed(NOT_LOADED); // the server is away
  } finally {
    if (running.get(img) === control) running.delete(img);
    start();
  }
};
const keep = (example, address) => {
  addresses.delete(example);
  addresses.set(example, address);
  if (addresses.size <= KEPT) return;
  const [oldest, old] = addresses.entries().next().value;
  addresses.delete(oldest);
  URL.revokeObjectURL(old); // pictures that are on the screen are decoded already
};
