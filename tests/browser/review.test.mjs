// Reviews candidates in Chromium as a person would: by keyboard, with a mouse, on a phone, in two tabs, with a server that dies.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review.test.mjs

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { chromium } from "playwright-core";
import { hostileReview, HOSTILE, isRelevant, manyCandidates } from "./review-data.mjs";
import { demoArguments, labelsieve, serve } from "./review-server.mjs";

const demo = process.env.LABELSIEVE_DEMO ?? "labelsieve-demo";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let browser, folder;
let servers = [], contexts = [], requests = [], complaints = [];

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
  folder = mkdtempSync(join(tmpdir(), "labelsieve-review-"));
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  for (const context of contexts) await context.close();
  for (const server of servers) await server.stop();
  const own = servers.map((server) => new URL(server.url).origin);
  const outside = requests.filter((url) => !url.startsWith("blob:") && !own.includes(new URL(url).origin));
  const wrong = complaints;
  servers = [];
  contexts = [];
  requests = [];
  complaints = [];
  assert.deepEqual(outside, [], "no request leaves the machine");
  assert.deepEqual(wrong, [], "nothing goes wrong on the way");
});

// ---- helpers

let numbered = 0;
const output = (ending = "parquet") => join(folder, `decisions-${numbered += 1}.${ending}`);
const start = async (...args) => {
  const server = await serve(...args);
  servers.push(server);
  return server;
};
const demoFile = (name) => join(demo, name);
const startDemo = (decisions = output()) => start(...demoArguments(demo, decisions));

const open = async (url, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  contexts.push(context);
  return openIn(context, url);
};
const openIn = async (context, url) => {
  const page = await context.newPage();
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    // The browser itself tells of every answer that is not a success; pictures may be missing, and servers die here.
    if (["error", "warning"].includes(message.type()) && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => { complaints.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(url);
  await page.locator("#grid .card").first().waitFor();
  return page;
};

/** The card with the focus: row, id, label, decision saved and shown, relevance, where it is on the screen. */
const focused = (page) => page.evaluate(() => {
  const card = document.activeElement;
  if (!card?.classList.contains("card")) return { tag: card?.tagName, id: card?.id };
  const { x, y } = card.getBoundingClientRect();
  return { row: card.row, id: card.data.id[card.row], label: card.textContent, saved: card.data.decision[card.row], relevance: card.data.relevance[card.row], x, y };
});
const cardOf = (page, row) => page.evaluate((row) => {
  const card = [...document.querySelectorAll("#grid .card")].find((one) => one.row === row && !one.hidden);
  return card && { label: card.textContent, saving: card.classList.contains("saving"), mark: card.querySelector(".mark").hidden ? "" : card.querySelector(".mark").dataset.text, y: card.getBoundingClientRect().y };
}, row);
const saved = (page, n) => page.waitForFunction((text) => document.getElementById("status").textContent.startsWith(text), `Saved · ${n} decision`, { timeout: 30_000 });
const api = (page, path) => page.evaluate((path) => fetch(path).then((answer) => answer.json()), path);
const until = async (page, path, holds) => {
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    if (holds(await api(page, path))) return;
    await page.waitForTimeout(50);
  }
  assert.fail(`${path} never became what was expected`);
};
const rescored = (page, c, revision) => until(page, `api/classes/${c}/scores`, (scores) => scores.revision > revision);
const differ = (a, b) => a.some((value, i) => value !== b[i]);
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const serious = async (page, what) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 40).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
  assert.deepEqual(bad, [], what);
};

// ---- the whole loop

test("a person decides by keyboard, the relevance follows, nothing is lost, and the classifier gets better", async (t) => {
  const decisions = output();
  const server = await startDemo(decisions);
  let page = await open(server.url);
  const session = await api(page, "api/session");
  assert.equal(session.classes.length, 32);
  const nameOf = (c) => session.classes[c].name.split(":")[0];

  // The first card has the focus: no mouse, no Tab.
  const first = await focused(page);
  assert.equal(typeof first.row, "number", JSON.stringify(first));
  const before = await api(page, "api/classes/0");

  await page.keyboard.press(isRelevant(nameOf(0), first.id) ? "a" : "r");
  await saved(page, session.n_decisions + 1).catch(() => {}); // near-duplicates may have come along
  const second = await focused(page);
  assert.notEqual(second.row, first.row, "the focus moves on by itself");
  assert.match((await cardOf(page, first.row)).label, /accepted$|rejected$/);
  assert.ok(Math.abs((await cardOf(page, first.row)).y - first.y) < 1, "nothing jumps");
  await rescored(page, 0, before.revision);
  const moved = await api(page, "api/classes/0/scores");
  assert.ok(differ(moved.relevance, before.relevance), "the relevance follows");
  await page.waitForFunction(([row, value]) => {
    const card = [...document.querySelectorAll("#grid .card")].find((one) => one.row === row);
    return Math.abs(card.data.relevance[row] - value) < 1e-6;
  }, [second.row, moved.relevance[second.row]], { timeout: 30_000 });
  assert.equal((await focused(page)).row, second.row, "without losing the place");

  // Undo leads back, redo does it again.
  await page.keyboard.press("z");
  await page.waitForFunction((row) => document.activeElement.row === row && document.activeElement.data.decision[row] === 0, first.row);
  await page.keyboard.press("Shift+Z");
  await page.waitForFunction((row) => document.activeElement.data.decision[row] !== 0, first.row);

  // Five decisions for every class, as the truth is.
  let n = 0;
  for (let visited = 0; visited < session.classes.length; visited += 1) {
    if (visited > 0) {
      const heading = await page.locator("#heading").textContent();
      await page.keyboard.press("n");
      await page.waitForFunction((old) => document.getElementById("heading").textContent !== old && document.activeElement.data?.class !== undefined
        && document.getElementById("about").textContent.includes("candidates:"), heading, { timeout: 60_000 });
    }
    for (let k = 0; k < 5; k += 1) {
      const at = await focused(page);
      const c = await page.evaluate(() => document.activeElement.data.class);
      const relevant = isRelevant(nameOf(c), at.id);
      assert.notEqual(relevant, undefined, `truth of ${nameOf(c)} ${at.id}`);
      await page.keyboard.press(relevant ? "a" : "r");
      n += 1;
    }
  }
  await page.waitForFunction(() => document.getElementById("status").dataset.state === "saved", null, { timeout: 60_000 });
  const decided = (await api(page, "api/session")).n_decisions;
  assert.ok(decided >= n, `${decided} decisions of ${n}`);

  // A reload comes back to the same class; so does a new server after kill -9.
  const heading = await page.locator("#heading").textContent();
  await page.reload();
  await page.locator("#grid .card").first().waitFor();
  assert.equal(await page.locator("#heading").textContent(), heading);
  await server.kill();
  await page.locator("#banner", { hasText: "does not answer" }).waitFor({ timeout: 15_000 });
  await page.keyboard.press("a");
  await page.locator("#banner", { hasText: "Not saved" }).waitFor({ timeout: 15_000 });
  assert.equal((await focused(page)).saved ?? 0, 0);

  const again = await startDemo(decisions);
  page = await open(again.url);
  const resumed = await api(page, "api/session");
  assert.equal(resumed.n_decisions, decided, "kill -9 loses nothing");
  assert.equal(await page.locator("#heading").textContent(), heading, "resumes where it stopped");

  // The download says the same, one line per decision.
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#download").click()]);
  const csv = readFileSync(await download.path(), "utf8").trim().split("\n");
  assert.match(csv[0], /^id,class,decision,by,at/);
  assert.ok(csv.length > n);
  await again.stop();

  // What the page says makes the relevance permanent, and the classifier better.
  const tested = (relevance, name) => {
    const model = join(folder, `${name}.safetensors`);
    labelsieve("train", "--clean", demoFile("clean.parquet"), "--noisy", demoFile("pool.parquet"), "--relevance", relevance, "-o", model, "--device", "cpu", "-q");
    return JSON.parse(labelsieve("evaluate", "--model", model, "--test", demoFile("test.parquet"), "--device", "cpu", "--json")).top_1;
  };
  const relevance = join(folder, "decided.parquet");
  labelsieve("clean", "--clean", demoFile("clean.parquet"), "--noisy", demoFile("pool.parquet"), "--candidates", demoFile("candidates.parquet"),
    "--decisions", decisions, "--device", "cpu", "-o", relevance, "-q");
  const [without, with_] = [tested(demoFile("relevance.parquet"), "before"), tested(relevance, "after")];
  t.diagnostic(`top-1 on icons held out: ${without} before, ${with_} after five decisions per class`);
  assert.ok(with_ > without, `${with_} after, ${without} before`);
});

// ---- keeping one's place

test("the card under the eye stays where it is when new scores come and when it is sorted again", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.locator("#order").selectOption("high");
  await page.locator("#grid .card").first().click();
  for (let i = 0; i < 9; i += 1) await page.keyboard.press("ArrowRight");
  const { class: c, revision } = await api(page, "api/classes/0/scores");
  await page.keyboard.press("r");
  const at = await focused(page);
  await rescored(page, c, revision);
  await page.locator("#refresh").waitFor();
  assert.deepEqual([(await focused(page)).row, (await focused(page)).y], [at.row, at.y], "new scores move no card");
  await page.keyboard.press("o");
  await page.locator("#refresh").waitFor({ state: "hidden" });
  await page.waitForTimeout(400);
  const now = await focused(page);
  assert.equal(now.row, at.row);
  const top = await page.evaluate(() => document.getElementById("grid").scrollTop);
  assert.ok(Math.abs(now.y - at.y) < 2 || top === 0, `stays at ${at.y}, is at ${now.y}`);
});

test("a decision shows as saved only after the server says so, and goes away when it does not", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const { row } = await focused(page);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  let answers = true; // one route for all of it: setting up another one takes a while
  await page.route("**/api/decisions", async (route) => {
    await held;
    await (answers ? route.continue() : route.abort());
  });
  await page.keyboard.press("a");
  const waiting = await cardOf(page, row);
  assert.deepEqual([waiting.saving, await page.locator("#status").textContent()], [true, "Saving…"]);
  assert.match(waiting.label, /being saved$/);
  release();
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"));
  assert.equal((await cardOf(page, row)).saving, false);

  const next = await focused(page);
  answers = false;
  await page.keyboard.press("r");
  await page.locator("#banner", { hasText: "Not saved" }).waitFor();
  assert.equal((await cardOf(page, next.row)).mark, "", "rolled back");
  assert.match((await cardOf(page, next.row)).label, /undecided$/);
  answers = true;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForFunction((row) => [...document.querySelectorAll("#grid .card")].find((card) => card.row === row).data.decision[row] === 2, next.row);
  assert.equal(await page.locator("#banner").isVisible(), false);
});

// ---- selecting

test("a range, a lasso and single cards are selected, decided at once and undone at once", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.locator("#open-tools").click();
  await page.locator("#once").uncheck();
  await page.waitForTimeout(300);
  const selected = () => page.locator("#grid .card.selected").count();
  const cards = page.locator("#grid .card:not([hidden])");
  await page.locator("#grid .card.focused").focus();
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  assert.equal(await selected(), 3);
  assert.equal(await page.locator("#chosen").textContent(), "3 pictures selected");
  await page.keyboard.press("Escape");
  assert.equal(await selected(), 0);

  const place = (n) => page.evaluate((n) => { const box = [...document.querySelectorAll("#grid .card")].find((card) => card.index === n && !card.hidden).getBoundingClientRect(); return { x: box.x, y: box.y, w: box.width, h: box.height }; }, n);
  const [one, four] = [await place(0), await place(3)];
  await page.mouse.click(one.x + 20, one.y + 20);
  await page.keyboard.down("Shift");
  await page.mouse.click(four.x + 20, four.y + 20);
  await page.keyboard.up("Shift");
  assert.equal(await selected(), 4);
  await page.keyboard.down("Control");
  await page.mouse.click(one.x + 20, one.y + 20);
  await page.keyboard.up("Control");
  assert.equal(await selected(), 3);

  // From the middle of the first card to the middle of the card below the second.
  const columns = await page.evaluate(() => getComputedStyle(document.getElementById("grid")) && Math.round(document.querySelector("#grid .canvas").clientWidth / document.querySelector("#grid .card").offsetWidth - 0.3));
  const corner = await place(columns + 1);
  await page.mouse.move(one.x + one.w / 2, one.y + one.h / 2);
  await page.mouse.down();
  await page.mouse.move(corner.x + 10, corner.y + 10, { steps: 5 });
  await page.mouse.move(corner.x + corner.w / 2, corner.y + corner.h / 2, { steps: 3 });
  assert.ok(await page.locator(".lasso").isVisible());
  await page.mouse.up();
  assert.equal(await selected(), 4, "two by two");
  const rows = await page.evaluate(() => [...document.querySelectorAll("#grid .card.selected")].map((card) => card.row));
  await page.keyboard.press("u");
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"));
  const decided = (await api(page, "api/classes/0")).decision;
  assert.ok(rows.every((row) => decided[row] === 3));
  assert.equal(await selected(), 0);
  await page.keyboard.press("Control+z");
  await until(page, "api/session", (session) => session.n_decisions === 0);
  assert.ok((await cards.count()) > 4);
});

test("a mark on the card decides by click, and the second click on a card opens it", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const first = await focused(page);
  await page.locator("#grid .card.focused").hover();
  await page.locator("#grid .card.focused [data-quick=reject]").click();
  await page.waitForFunction((row) => [...document.querySelectorAll("#grid .card")].find((card) => card.row === row).data.decision[row] === 2, first.row);
  const other = page.locator("#grid .card[aria-posinset='4']");
  await other.click({ position: { x: 30, y: 30 } });
  assert.equal(await page.locator("#detail").isVisible(), false);
  await other.click({ position: { x: 30, y: 30 } });
  await page.locator("#detail").waitFor();
});

// ---- the detail view

test("the detail view shows picture, reasons, clean example, neighbours and history, and decides", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const detail = page.locator("#detail");
  const { row, id } = await focused(page);
  await page.keyboard.press("Enter");
  await detail.locator("h3", { hasText: "Neighbours in the graph" }).waitFor({ timeout: 30_000 });
  const width = await detail.locator(".full img").evaluate((image) => image.decode().then(() => image.naturalWidth));
  assert.ok(width > 0);
  const text = await detail.textContent();
  for (const part of ["relevance", "matched name", id, "Reasons", "similarity to the closest clean example", "Nearest clean example", "No decision yet."]) assert.ok(text.includes(part), part);
  await page.keyboard.press("a");
  await page.waitForFunction((old) => document.querySelector("#detail dl").textContent && !document.querySelector("#detail dl").textContent.includes(old), id);
  await page.keyboard.press("ArrowLeft");
  await detail.locator(".history li", { hasText: "accepted by" }).waitFor();
  assert.match(await detail.locator(".decided").textContent(), /accepted/);
  const near = detail.locator("button.near").first();
  const title = await near.getAttribute("aria-label");
  await near.click();
  await page.waitForFunction((id) => document.querySelector("#detail .facts").textContent.includes(id), title.split(": similarity")[0]);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement.classList.contains("card"));
  assert.equal((await api(page, "api/classes/0")).decision[row], 1);
});

// ---- order, filters, threshold, λ

test("filters and orders show what they say", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.locator("#open-tools").click();
  await page.locator("#once").uncheck();
  const shown = () => page.evaluate(() => [...document.querySelectorAll("#grid .card:not([hidden])")].sort((a, b) => a.index - b.index).map((card) => ({
    relevance: card.data.relevance[card.row], caption: card.data.text(card.row), decision: card.data.decided(card.row), name: card.data.name[card.row] })));
  const settle = () => page.waitForTimeout(350);
  await page.locator("#order").selectOption("high");
  await settle();
  let values = (await shown()).map((card) => card.relevance);
  assert.deepEqual(values, [...values].sort((a, b) => b - a));
  await page.locator("#order").selectOption("low");
  await settle();
  values = (await shown()).map((card) => card.relevance);
  assert.deepEqual(values, [...values].sort((a, b) => a - b));

  await page.locator("#from").fill("0.3");
  await page.locator("#to").fill("0.8");
  await settle();
  assert.ok((await shown()).every(({ relevance }) => relevance > 0.299 && relevance < 0.801));
  assert.equal(await page.locator("#range-text").textContent(), "0.30 to 0.80");
  assert.equal(await page.locator("#open-tools").textContent(), "Filtered");
  await page.getByRole("button", { name: "Reset filters" }).click();
  await settle();

  const word = (await shown())[0].caption.split(" ").pop();
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await page.keyboard.type(word.toUpperCase());
  await settle();
  const found = await shown();
  assert.ok(found.length > 0 && found.every(({ caption }) => caption.toLowerCase().includes(word.toLowerCase())));
  await page.keyboard.type(" nothing-is-called-that");
  await page.locator("#empty", { hasText: "No candidate matches the filter" }).waitFor();
  await page.locator("#empty").getByRole("button", { name: "Reset filters" }).click();
  await page.locator("#empty").waitFor({ state: "hidden" });

  await page.locator("#grid .card.focused").focus();
  await page.keyboard.press("a");
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"));
  await page.locator("#only").selectOption("1");
  await settle();
  assert.ok((await shown()).length >= 1 && (await shown()).every(({ decision }) => decision === 1));
  await page.locator("#only").selectOption("any");
  await settle();

  await page.locator("#grid .card.focused").focus();
  await page.keyboard.press("Home");
  await page.locator("#grid .card[aria-posinset='3']").click({ position: { x: 30, y: 30 } });
  const { row } = await focused(page);
  await page.keyboard.press("s");
  await page.waitForFunction((row) => document.querySelector("#order").value === "similar" && [...document.querySelectorAll("#grid .card")].find((card) => card.row === row)?.index === 0, row, { timeout: 20_000 });
});

test("the threshold says how many are kept, and λ changes the relevance and its default comes back", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const { relevance, revision } = await api(page, "api/classes/0/scores");
  await page.locator("#keep").fill("0.7");
  const n = relevance.filter((value) => value >= Math.fround(0.7)).length;
  assert.match(await page.locator("#kept").textContent(), new RegExp(`^Keeps ${n} of ${relevance.length} `));
  assert.ok((await page.locator("#grid .card.below").count()) > 0);
  await page.locator("#lambda").fill("900");
  await page.locator("#lambda").dispatchEvent("change");
  await rescored(page, 0, revision);
  const { lambda } = await api(page, "api/session");
  assert.ok(lambda > 1, `λ = ${lambda}`);
  assert.ok(differ((await api(page, "api/classes/0/scores")).relevance, relevance));
  await page.getByRole("button", { name: "Use the default" }).click();
  await page.locator("#lambda-value", { hasText: "(default)" }).waitFor();
  assert.equal((await api(page, "api/session")).lambda, null);
});

test("the curve has a text and a table", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const picture = page.locator("#curve svg");
  await picture.waitFor({ timeout: 120_000 });
  assert.match(await picture.getAttribute("aria-label"), /^Left-out accuracy .* %/);
  await page.locator("#curve summary").click();
  assert.ok((await page.locator("#curve tbody tr").count()) >= 1);
});

// ---- all classes, two tabs

test("all classes at once: strips load as they come near, decide by key and lead to their class", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.keyboard.press("c");
  await page.locator(".strip .card").first().waitFor();
  assert.ok((await page.locator(".strip").count()) < 20, "not all 32 at once");
  await page.waitForFunction(() => document.activeElement.closest?.(".strip"));
  const before = await focused(page);
  await page.keyboard.press("a");
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"));
  assert.notEqual((await focused(page)).row, before.row);
  await page.keyboard.press("End");
  await page.locator(".strip h2 button", { hasText: "weight" }).click();
  await page.locator("#grid .card").first().waitFor();
  assert.match(await page.locator("#heading").textContent(), /weight/);
});

test("two tabs see each other's decisions", async () => {
  const { url } = await startDemo();
  const one = await open(url);
  const two = await openIn(contexts[0], url);
  const { row } = await focused(one);
  await one.bringToFront();
  await one.keyboard.press("r");
  await two.waitForFunction((row) => [...document.querySelectorAll("#grid .card")].find((card) => card.row === row)?.classList.contains("rejected"), row, { timeout: 15_000 });
  await two.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"));
  await two.bringToFront();
  await two.keyboard.press("z");
  await one.waitForFunction((row) => ![...document.querySelectorAll("#grid .card")].find((card) => card.row === row)?.classList.contains("rejected"), row, { timeout: 15_000 });
});

test("a lost connection is told, and when it is back the page knows what happened meanwhile", async () => {
  const { url } = await startDemo();
  const one = await open(url);
  const context = await browser.newContext();
  contexts.push(context);
  await context.route("**/api/events", (route) => route.abort());
  const two = await openIn(context, url);
  await two.locator("#banner", { hasText: "does not answer" }).waitFor();
  const { row } = await focused(one);
  await one.keyboard.press("a");
  await one.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"));
  await context.unroute("**/api/events");
  await two.locator("#banner").waitFor({ state: "hidden", timeout: 20_000 });
  await two.locator("#status", { hasText: "Saved" }).waitFor();
  await until(two, "api/classes/0", (answer) => answer.decision[row] === 1);
  await two.locator("#about", { hasText: "accepted" }).waitFor();
});

// ---- everybody

for (const motion of ["reduce", "no-preference"]) {
  test(`cards ${motion === "reduce" ? "do not move for whom motion disturbs" : "move to their new places"}`, async () => {
    const { url } = await startDemo();
    const page = await open(url, { reducedMotion: motion });
    await page.evaluate(() => {
      const { animate } = Element.prototype;
      globalThis.animations = 0;
      Element.prototype.animate = function counted(...args) { globalThis.animations += 1; return animate.apply(this, args); };
    });
    const { revision } = await api(page, "api/classes/0/scores");
    await page.keyboard.press("r");
    await rescored(page, 0, revision);
    await page.locator("#refresh").waitFor();
    await page.keyboard.press("o");
    await page.locator("#refresh").waitFor({ state: "hidden" });
    const animations = await page.evaluate(() => globalThis.animations);
    assert.equal(animations > 0, motion !== "reduce", `${animations} animations`);
  });
}

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing serious in ${scheme} colours`, async () => {
    const { url } = await startDemo();
    const page = await open(url, { colorScheme: scheme });
    for (const key of ["a", "r", "u"]) await page.keyboard.press(key);
    await page.locator("#keep").fill("0.9");
    await page.waitForTimeout(1500);
    await serious(page, "one class");
    await page.locator("#grid .card.focused").focus();
    await page.keyboard.press("Enter");
    await page.locator("#detail h3", { hasText: "History" }).waitFor();
    await serious(page, "detail");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.locator("#help h2").waitFor();
    await serious(page, "help");
    await page.keyboard.press("Escape");
    await page.keyboard.press("c");
    await page.locator(".strip .card").first().waitFor();
    await page.waitForTimeout(500);
    await serious(page, "all classes");
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(background, scheme === "dark" ? "rgb(22, 24, 29)" : "rgb(255, 255, 255)");
  });
}

for (const width of [375, 320]) {
  test(`a phone of ${width} pixels needs no sideways scrolling, and a finger decides`, async () => {
    const { url } = await startDemo();
    const page = await open(url, { viewport: { width, height: 740 }, isMobile: true, hasTouch: true });
    assert.equal(await overflow(page), 0);
    const sizes = await page.locator("#actions button:visible").evaluateAll((all) => all.map((button) => button.getBoundingClientRect().height));
    assert.ok(Math.min(...sizes) >= 44, `large enough to touch: ${sizes}`);
    const card = page.locator("#grid .card[aria-posinset='2']");
    await card.tap({ position: { x: 30, y: 30 } });
    await page.locator("#actions [data-decide=accept]").tap();
    await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"));
    const box = await page.locator("#grid .card.focused").boundingBox();
    const touch = await page.context().newCDPSession(page);
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: box.x + 30, y: box.y + 30 }] });
    await page.waitForTimeout(700);
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    assert.equal(await page.locator("#grid .card.selected").count(), 1, "a long press selects");
    await page.getByRole("button", { name: "Unselect" }).tap();
    for (const side of ["Classes", "Scores"]) {
      await page.getByRole("button", { name: side, exact: true }).tap();
      assert.equal(await overflow(page), 0, side);
      await page.keyboard.press("Escape");
    }
    await page.locator("#open-tools").tap();
    assert.equal(await overflow(page), 0, "filters");
    await page.locator("#open-tools").tap();
    await page.locator("#grid .card.focused").focus();
    await page.keyboard.press("Enter");
    await page.locator("#detail h3", { hasText: "History" }).waitFor();
    assert.equal(await page.locator("#detail").evaluate((dialog) => dialog.scrollWidth - dialog.clientWidth), 0, "detail");
    await serious(page, "on a phone");
  });
}

// ---- hostile texts, missing and broken pictures, very many candidates

test("hostile captions, names and files are only text; what cannot be shown says so, in both themes", async () => {
  const { relevance, pictures, name, caption, matched } = hostileReview(folder);
  const { url } = await start(relevance, "--images", pictures, "-o", output("csv"));
  const page = await open(url);
  assert.equal(await page.locator("#heading").textContent(), HOSTILE[0]);
  await page.locator("#order").selectOption("high");
  await page.waitForFunction(() => document.querySelectorAll("#grid .card .blank:not([hidden])").length === 2);
  const captions = await page.evaluate(() => [...document.querySelectorAll("#grid .card:not([hidden])")].sort((a, b) => a.row - b.row).map((card) => card.querySelector(".caption").textContent));
  assert.deepEqual(captions.slice(0, 8), Array.from({ length: 8 }, (_, i) => caption(i)));
  assert.equal(await page.locator("img[src=x], #grid script, #grid b:not(.numbers b)").count(), 0);
  const blanks = await page.locator("#grid .card .blank:not([hidden])").allTextContents();
  assert.deepEqual(blanks.sort(), ["no picture", "picture cannot be decoded"]);
  const loaded = await page.evaluate(() => [...document.querySelectorAll("#grid .card img[src]")].filter((image) => image.naturalWidth > 0).length);
  assert.equal(loaded, 10, "whatever the file is called");
  const colour = () => page.locator("#grid .card .blank:not([hidden])").first().evaluate((blank) => getComputedStyle(blank).backgroundImage);
  const light = await colour();
  await page.getByRole("button", { name: "Use dark colours" }).click();
  assert.notEqual(await colour(), light, "placeholders follow the theme");

  await page.locator("#open-tools").click();
  await page.locator("#only-name").selectOption({ label: matched(1) });
  await page.waitForFunction(() => document.querySelectorAll("#grid .card:not([hidden])").length === 6);
  const names = await page.locator("#grid .card:not([hidden]) .name").allTextContents();
  assert.deepEqual([...new Set(names)], [matched(1)], "only those that were found by this name");
  await page.locator("#only-name").selectOption("any");
  await page.waitForFunction(() => document.querySelectorAll("#grid .card:not([hidden])").length === 12);

  for (let i = 0; i < 12; i += 1) {
    await page.locator(`#grid .card[aria-posinset='${i + 1}']`).focus();
    await page.keyboard.press("Enter");
    await page.locator("#detail h3", { hasText: "History" }).waitFor();
    assert.equal(await page.locator("#detail h2").textContent(), i === 10 ? name(i) : caption(i), "captions come with pictures, and one is missing");
    assert.equal(await page.locator("#detail img[src=x]").count(), 0);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.getElementById("detail").open);
  }
  await page.keyboard.press("Control+a");
  await page.keyboard.press("a");
  await page.locator("#done", { hasText: "All candidates of this class are decided" }).waitFor();
  await page.keyboard.press("n");
  await page.locator("#heading", { hasText: "plain" }).waitFor();
  const csv = await page.evaluate(() => fetch("api/decisions.csv").then((answer) => answer.text()));
  assert.ok(csv.includes("<img src=x onerror=alert(1)>.png"));
});

/**
 * Durations of the tasks of pages while `action` runs, in milliseconds: by the clock, and of the processor. Long tasks are
 * those above 50 ms; where other programs keep the processor busy, the clock counts their time too.
 */
const tasksDuring = async (action) => {
  const session = await browser.newBrowserCDPSession();
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value.filter(({ name }) => name === "RunTask" || name === "thread_name")));
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["disabled-by-default-devtools.timeline", "__metadata"] } });
  const result = await action();
  const complete = new Promise((resolve) => { session.once("Tracing.tracingComplete", resolve); });
  await session.send("Tracing.end");
  await complete;
  const threadOf = ({ pid, tid }) => `${pid} ${tid}`;
  const pages = new Set(events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(threadOf));
  const tasks = events.filter((event) => event.name === "RunTask" && pages.has(threadOf(event)) && event.tdur !== undefined);
  return { result, n: tasks.length, clock: tasks.map(({ dur }) => dur / 1000), processor: tasks.map(({ tdur }) => tdur / 1000) };
};

test("100,000 candidates scroll without long tasks", async (t) => {
  const n = 100_000;
  const { relevance, pictures } = manyCandidates(folder, n);
  const { url } = await start(relevance, "--images", pictures, "-o", output());
  const page = await open(url);
  assert.match(await page.locator("#shown").textContent(), /^100,000 candidates$/);
  await page.waitForTimeout(2000);
  const scroll = () => page.evaluate(async () => {
    const scroller = document.getElementById("grid");
    const started = performance.now();
    let frames = 0;
    await new Promise((done) => {
      const step = () => {
        const passed = performance.now() - started;
        if (passed > 5000) { done(); return; }
        frames += 1;
        // First as fast as a wheel, then in leaps, as somebody drags the scroll bar.
        scroller.scrollTop = passed < 3000 ? 2 * passed : scroller.scrollTop + scroller.scrollHeight / 150;
        requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    });
    return { frames: frames / 5, cards: document.querySelectorAll("#grid .card").length };
  });
  const { result: { frames, cards }, n: nTasks, clock, processor } = await tasksDuring(scroll);
  const longest = Math.max(...processor);
  t.diagnostic(`${frames.toFixed(0)} frames per second; ${nTasks} tasks, the longest ${longest.toFixed(1)} ms of the processor; by the clock ${clock.filter((ms) => ms > 50).length} above 50 ms; ${cards} cards in the document`);
  assert.ok(nTasks > 100, "tasks were seen");
  assert.ok(cards < 200, "cards are used again");
  assert.ok(longest < 50, `a task of ${longest} ms`);
  await page.locator("#grid .card img[src]").first().waitFor();
  await page.keyboard.press("End");
  await page.waitForFunction((n) => document.activeElement.getAttribute("aria-posinset") === String(n), n);
  await page.keyboard.press("a");
  await saved(page, 1);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("u");
  await saved(page, "100,000");
  await page.keyboard.press("z");
  await saved(page, 1);
});

test("help opens on ?, and an unknown address or a missing token is refused", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.keyboard.press("?");
  assert.match(await page.locator("#help").textContent(), /Backspace.*clear the decision/);
  await page.keyboard.press("Escape");
  const status = await page.evaluate(() => fetch("/api/session").then((answer) => answer.status));
  assert.ok(status >= 400);
});
