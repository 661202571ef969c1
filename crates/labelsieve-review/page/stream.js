// The connection that the server's events come over. All tabs of a review share one: a browser allows six connections to a
// host, and where events hold them all, nothing can be shown or saved any more.

const EVENTS = ["decisions", "scoring", "scores", "curve", "lambda", "failed"];
const RETRY_MS = [500, 1000, 2000, 5000];

/** Connects, again and again if need be. `tell(name, data)` gets the events, `open` and `lost`; the answer ends it. */
const connect = (tell) => {
  let source, timer, failures = 0;
  const attempt = () => {
    source = new EventSource("api/events");
    source.addEventListener("open", () => { failures = 0; tell("open"); });
    source.addEventListener("error", () => {
      source.close(); // the browser's own retries give up for good on some errors
      timer = setTimeout(attempt, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]);
      failures += 1;
      if (failures === 1) tell("lost");
    });
    for (const name of EVENTS) source.addEventListener(name, (event) => tell(name, JSON.parse(event.data)));
  };
  attempt();
  return () => { clearTimeout(timer); source.close(); };
};

/** The tab that holds the lock holds the connection, and passes on what it hears; when it is closed, the next one takes over. */
const followTogether = (tell) => {
  const review = `labelsieve${location.pathname}`;
  const channel = new BroadcastChannel(review);
  const self = crypto.randomUUID();
  let state = null; // of the connection, in the tab that holds it
  let hasHeard = false;
  channel.addEventListener("message", ({ data: { name, data, from, to } }) => {
    if (name === "hello") {
      if (state) channel.postMessage({ name: state, to: from });
    } else if (to === undefined || (to === self && !hasHeard)) {
      hasHeard = true;
      tell(name, data);
    }
  });
  channel.postMessage({ name: "hello", from: self });
  navigator.locks.request(review, () => {
    connect((name, data) => {
      if (name === "open" || name === "lost") state = name;
      channel.postMessage({ name, data });
      tell(name, data);
    });
    return new Promise(() => {}); // until the tab is closed
  });
};

/** Every tab by itself, and only those that are looked at. */
const followAlone = (tell) => {
  let end = null;
  const follow = () => {
    if (document.hidden) { end?.(); end = null; }
    else end ??= connect(tell);
  };
  document.addEventListener("visibilitychange", follow);
  follow();
};

/**
 * Follows the server's events: `on[name](data)`, `on.open()` whenever they begin to come, `on.lost()` when the connection breaks.
 */
export const follow = (on) => {
  const tell = (name, data) => on[name](data);
  if (navigator.locks) followTogether(tell);
  else followAlone(tell); // browsers lend locks only to pages from this machine or over TLS
};
