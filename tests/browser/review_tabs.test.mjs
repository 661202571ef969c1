// All classes at once, and several tabs whose answers and events overtake each other.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_tabs.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { allSaved, api, browser, contexts, focused, open, openIn, startDemo, until } from "./review-page.mjs";

test("all classes at once: strips load as they come near, decide by key and lead to their class", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.keyboard.press("c");
  await page.locator(".strip .card").first().waitFor();
  assert.ok((await page.locator(".strip").count()) < 20, "not all 32 at once");
  await page.waitForFunction(() => document.activeElement.closest?.(".strip"));
  const before = await focused(page);
  await page.keyboard.press("a");
  await allSaved(page);
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
  await allSaved(two);
  await two.bringToFront();
  await two.keyboard.press("z");
  await one.waitForFunction((row) => ![...document.querySelectorAll("#grid .card")].find((card) => card.row === row)?.classList.contains("rejected"), row, { timeout: 15_000 });
});

test("seven tabs of a review decide and hear of it over one connection, also when the tab that held it is closed", async () => {
  const { url } = await startDemo();
  const context = await browser.newContext();
  contexts.push(context);
  let connections = 0;
  context.on("request", (request) => { if (request.url().endsWith("api/events")) connections += 1; });
  const pages = [];
  for (let i = 0; i < 7; i += 1) pages.push(await openIn(context, url)); // more than a browser has connections to a host
  assert.equal(connections, 1);
  const decided = (page, row, look) => page.waitForFunction(([row, look]) => [...document.querySelectorAll("#grid .card")].find((card) => card.row === row)?.classList.contains(look), [row, look], { timeout: 15_000 });
  const [first, second, ...others] = pages;
  const { row } = await focused(first);
  await first.keyboard.press("r");
  await allSaved(first);
  for (const page of [second, ...others]) await decided(page, row, "rejected");

  const again = context.waitForEvent("request", (request) => request.url().endsWith("api/events"));
  await first.close();
  await again;
  for (const page of [second, ...others]) await page.locator("#live", { hasText: "Connected again." }).waitFor({ state: "attached" });
  assert.equal(connections, 2);
  const next = await focused(second);
  await second.keyboard.press("a");
  for (const page of others) await decided(page, next.row, "accepted");
});

test("where tabs cannot share a connection, one that is hidden has none and fetches what it missed", async () => {
  const { url } = await startDemo();
  const context = await browser.newContext();
  contexts.push(context);
  await context.addInitScript(() => Object.defineProperty(Navigator.prototype, "locks", { value: undefined }));
  const [one, two] = [await openIn(context, url), await openIn(context, url)];
  const setHidden = (hidden) => two.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  const closed = two.waitForEvent("requestfailed", (request) => request.url().endsWith("api/events"));
  await setHidden(true);
  await closed;
  await one.keyboard.press("a");
  await allSaved(one);
  assert.equal(await two.locator("#status").textContent(), "No decisions yet");
  await setHidden(false);
  await allSaved(two);
  assert.equal(await two.locator("#banner").isVisible(), false);
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
  await allSaved(one);
  await context.unroute("**/api/events");
  await two.locator("#banner").waitFor({ state: "hidden", timeout: 20_000 });
  await two.locator("#status", { hasText: "Saved" }).waitFor();
  await until(two, "api/classes/0", (answer) => answer.decision[row] === 1);
  await two.locator("#about", { hasText: "accepted" }).waitFor();
});
