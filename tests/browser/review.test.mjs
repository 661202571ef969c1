// Reviews candidates in Chromium as a person would: by keyboard, with a mouse, on a phone, in two tabs, with a server that dies.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review.test.mjs

import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { chromium } from "playwright-core";
import { hostileReview, HOSTILE, manyCandidates } from "./review-data.mjs";
import { labelsieve, serve } from "./review-server.mjs";

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
const demoArguments = (decisions) => [demoFile("relevance.parquet"), "--images", demoFile("images/pool"), demoFile("images/clean"),
  "--clean", demoFile("clean.parquet"), "--noisy", demoFile("pool.parquet"), "--candidates", demoFile("candidates.parquet"), "-o", decisions];
const startDemo = (decisions = output()) => start(...demoArguments(decisions));

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
  return { row: card.row, id: card.data.id[card.row], label: card.getAttribute("aria-label"), saved: card.data.decision[card.row], relevance: card.data.relevance[card.row], x, y };
});
const cardOf = (page, row) => page.evaluate((row) => {
  const card = [...document.querySelectorAll("#grid .card")].find((one) => one.row === row && !one.hidden);
  return card && { label: card.getAttribute("aria-label"), saving: card.classList.contains("saving"), mark: card.querySelector(".mark").textContent, y: card.getBoundingClientRect().y };
}, row);
const saved = (page, n) => page.waitForFunction((text) => document.getElementById("status").textContent.startsWith(text), `Saved · ${n} decision`, { timeout: 30_000 });
const api = (page, path) => page.evaluate((path) => fetch(path).then((answer) => answer.json()), path);
const rescored = (page, c, revision) => page.waitForFunction(([c, revision]) =>
  fetch(`api/classes/${c}/scores`).then((answer) => answer.json()).then((scores) => scores.revision > revision), [c, revision], { timeout: 60_000 });
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const serious = async (page, what) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
  assert.deepEqual(bad, [], what);
};

/** What somebody who looked at every icon says: class and id to relevant or not. */
const truth = new Map(readFileSync(new URL("../../tools/icons/truth.csv", import.meta.url), "utf8").trim().split("\n").slice(1).map((line) => {
  const [name, id, , relevant] = line.split(",");
  return [`${name} ${id.replace(":", "_")}`, relevant === "1"];
}));
const isRelevant = (name, id) => truth.get(`${name} ${id.replace(/\.png$/, "")}`);

// ---- the whole loop

test("a person decides by keyboard, the relevance follows, nothing is lost, and the classifier gets better", async (t) => {
  const decisions = output();
  const server = await startDemo(decisions);
  let page = await open(server.url);
  const session = await api(page, "api/session");
  assert.equal(session.classes.length, 32);
  const nameOf = (c) => session.classes[c].class_id ?? session.classes[c].id ?? session.classes[c].name.split(/[:\s]/)[0];

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
  assert.notDeepEqual(moved.relevance, before.relevance, "the relevance follows");
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
