// What comes late, twice, in another order, or not at all: every tab ends up at what the server knows.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_races.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { allSaved, api, browser, cardOf, contexts, focused, open, openIn, rescored, startDemo, until } from "./review-page.mjs";

/** Something to wait for, and how to end the waiting. */
const gate = () => {
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  return { released, release };
};
/** Decides as another tab would. */
const decideElsewhere = (page, c, rows, decision) => page.evaluate((body) => fetch("api/decisions", {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }).then((answer) => answer.json()), { class: c, rows, decision });
/** What the page has of a class, by the card with the focus: decision and relevance. */
const known = (page) => page.evaluate(() => { const { data } = document.querySelector("#grid .card.focused"); return { class: data.class, decision: [...data.decision], relevance: [...data.relevance] }; });

test("decisions and scores that come while a class is being fetched are not lost", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const { released, release } = gate();
  const { released: asked, release: ask } = gate();
  await page.route("**/api/classes/1", async (route) => {
    const response = await route.fetch(); // as it was before
    ask();
    await released;
    await route.fulfill({ response });
  });
  const { revision } = await api(page, "api/classes/1/scores");
  await page.keyboard.press("n");
  await asked;
  const { changes } = await decideElsewhere(page, 1, [3], "reject");
  await rescored(page, 1, revision);
  await page.waitForTimeout(300); // for the events
  release();
  await page.waitForFunction(() => document.querySelector("#grid .card.focused")?.data?.class === 1);
  const { relevance } = await api(page, "api/classes/1/scores");
  await page.waitForFunction((first) => document.querySelector("#grid .card.focused").data.relevance.every((value, row) => value === Math.fround(first[row])), relevance);
  const { decision } = await known(page);
  assert.deepEqual(changes.map(([row]) => decision[row]), changes.map(() => 2));
});

test("an answer that comes late does not replace what another tab has decided since", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const { row } = await focused(page);
  const { released, release } = gate();
  const { released: answered, release: answer } = gate();
  const other = await openIn(contexts[0], url);
  await page.bringToFront();
  await page.route("**/api/decisions", async (route) => {
    const response = await route.fetch();
    answer();
    await released;
    await route.fulfill({ response });
  });
  await page.locator("#grid .card.focused").focus();
  await page.keyboard.press("a");
  await answered;
  await decideElsewhere(other, 0, [row], "reject");
  await until(page, "api/classes/0", ({ decision }) => decision[row] === 2);
  await page.waitForTimeout(300);
  assert.equal((await cardOf(page, row)).saving, true, "its own is still on its way");
  release();
  await allSaved(page);
  assert.deepEqual([(await cardOf(page, row)).mark, (await cardOf(page, row)).saving], ["✗", false]);
  assert.match(await page.locator("#about").textContent(), /: \d+ rejected$/, "and counts are those of the last decision");
  assert.deepEqual(await known(page).then(({ decision }) => decision), (await api(page, "api/classes/0")).decision);
});

test("what was decided before the first event could come is fetched", async () => {
  const { url } = await startDemo();
  const context = await browser.newContext();
  contexts.push(context);
  const { released, release } = gate();
  await context.route("**/api/events", async (route) => { await released; await route.continue(); });
  const page = await openIn(context, url); // does not wait for events for ever
  const { row } = await focused(page);
  await decideElsewhere(page, 0, [row], "reject");
  release();
  await page.waitForFunction((row) => [...document.querySelectorAll("#grid .card")].some((card) => card.row === row && card.classList.contains("rejected")), row, { timeout: 15_000 });
  await allSaved(page);
});

test("a class that cannot be opened leaves one where one was", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const heading = await page.locator("#heading").textContent();
  await page.route("**/api/classes/1", (route) => route.fulfill({ status: 500, json: { error: "the disk is away" } }));
  await page.keyboard.press("n");
  await page.locator("#banner", { hasText: "the disk is away" }).waitFor();
  assert.equal(await page.locator("#heading").textContent(), heading);
  assert.match(await page.locator("#about").textContent(), /candidates: none decided yet/);
  const { row } = await focused(page);
  assert.equal(typeof row, "number", "the focus is back on the card");
  await page.unroute("**/api/classes/1");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForFunction((old) => document.getElementById("heading").textContent !== old, heading);
  await page.waitForFunction(() => document.activeElement.data?.class === 1);
  await page.keyboard.press("a");
  await allSaved(page);
});

test("an order that cannot be had is told of, and the page goes on", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.route("**/api/classes/0/order?by=next", (route) => route.fulfill({ status: 503, json: { error: "the graph is still being made" } }));
  await page.keyboard.press("a");
  await page.locator("#banner", { hasText: "the graph is still being made" }).waitFor({ timeout: 30_000 });
  await page.unroute("**/api/classes/0/order?by=next");
  await page.keyboard.press("o");
  await page.locator("#refresh").waitFor({ state: "hidden" });
});

test("the same scores twice leave the changes on the cards", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const { revision } = await api(page, "api/classes/0/scores");
  await page.keyboard.press("r");
  await rescored(page, 0, revision);
  const changes = () => page.evaluate(() => [...document.querySelectorAll("#grid .card:not([hidden])")].sort((a, b) => a.row - b.row).map((card) => card.querySelector(".change").textContent).filter(Boolean));
  await page.waitForFunction(() => [...document.querySelectorAll("#grid .change")].some((change) => change.textContent !== ""));
  await page.waitForTimeout(500); // the list below follows
  const before = await changes();
  await page.evaluate(async () => {
    const { store } = await import(new URL("store.js", location.href));
    await Promise.all([store.rescore(0), store.rescore(0)]);
  });
  assert.deepEqual(await changes(), before);
});

test("candidates on the screen stay in memory, however many others come", async () => {
  const { url } = await startDemo();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  contexts.push(context);
  await context.route("**/api/classes/1", async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    const n = 400_000; // as many as the page keeps
    const padded = (list, filler) => [...list, ...Array.from({ length: n - list.length }, filler)];
    const many = { id: (_, i) => `more-${i}`, example: () => 0, caption: () => null, name: () => -1, relevance: () => 0, decision: () => 0 };
    for (const [key, filler] of Object.entries(many)) answer[key] = padded(answer[key], filler);
    answer.group = Array.from({ length: n }, (_, row) => answer.group[row] ?? row);
    await route.fulfill({ json: answer });
  });
  const page = await openIn(context, url);
  await page.keyboard.press("c");
  await page.waitForFunction(() => [...document.querySelectorAll(".strip")].some((strip) => strip.data?.class === 1), null, { timeout: 30_000 });
  await page.waitForFunction(() => document.activeElement.closest?.(".strip")?.class === 0);
  await page.keyboard.press("a");
  await allSaved(page);
  const first = page.locator(".strip .card[aria-posinset='1']").first();
  await page.waitForFunction(() => [...document.querySelectorAll(".strip")].find((strip) => strip.class === 0).cards[0].classList.contains("accepted"));
  assert.equal(await page.locator(".strip .card.saving").count(), 0);
  assert.ok(await first.isVisible());
});
