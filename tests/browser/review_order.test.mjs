// Order, filters, threshold, λ and the curve.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_order.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { allSaved, api, differ, focused, open, rescored, startDemo, until } from "./review-page.mjs";

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
  await allSaved(page);
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
  await page.locator("#command", { hasText: ` --lambda ${lambda} ` }).waitFor(); // the command makes what the page shows
  await page.getByRole("button", { name: "Use the default" }).click();
  await page.locator("#lambda-value", { hasText: "(default)" }).waitFor();
  assert.equal((await api(page, "api/session")).lambda, null);
  await page.waitForFunction(() => !document.getElementById("command").textContent.includes("--lambda"));
});

const chooseLambda = async (page, value) => {
  await page.locator("#lambda").fill(value);
  await page.locator("#lambda").dispatchEvent("change");
};

test("another λ counts for classes that were looked at before, and for their strips", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const goTo = async (key, c) => {
    await page.keyboard.press(key);
    await page.waitForFunction((c) => document.activeElement.data?.class === c, c);
  };
  await goTo("n", 1);
  const { relevance, revision } = await api(page, "api/classes/1/scores");
  await goTo("n", 2);
  await chooseLambda(page, "950");
  await until(page, "api/session", ({ lambda }) => lambda > 1);
  await page.locator("#class-list .class-line[aria-posinset='2']").click();
  await rescored(page, 1, revision);
  const now = (await api(page, "api/classes/1/scores")).relevance;
  assert.ok(differ(now, relevance));
  await page.waitForFunction((now) => document.querySelector("#grid .card.focused").data.relevance.every((value, row) => value === Math.fround(now[row])), now);

  await page.keyboard.press("c");
  const mean = now.reduce((sum, value) => sum + value, 0) / now.length;
  await page.waitForFunction((text) => [...document.querySelectorAll(".strip")].find((strip) => strip.class === 1)?.counts.textContent.endsWith(text), `mean relevance ${mean.toFixed(2)}`);
});

test("new relevance brings nothing into a list that a filter has emptied", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.keyboard.press("/");
  await page.keyboard.type("nothing-is-called-that");
  await page.locator("#empty", { hasText: "No candidate matches the filter" }).waitFor();
  await chooseLambda(page, "900");
  await page.locator("#live", { hasText: "Relevance updated" }).waitFor({ state: "attached", timeout: 30_000 });
  await page.waitForTimeout(300);
  assert.equal(await page.locator("#grid .card:visible").count(), 0);
  assert.ok(await page.locator("#empty").isVisible());
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
