// A review of files that say as little as they may: the page says what it lacks, and shows no gaps.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_bare.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { bareReview } from "./review-data.mjs";
import { folder, open, output, start } from "./review-page.mjs";

const openBare = async () => {
  const decisions = output("csv");
  const { relevance, pictures } = bareReview(folder, decisions);
  const { url } = await start(relevance, "--images", pictures, "-o", decisions);
  const page = await open(`${url}#class/${CLASSES.indexOf("things")}`);
  await page.locator("#heading", { hasText: "things" }).waitFor();
  await page.locator("#order").selectOption("high");
  return page;
};
const CLASSES = ["empty", "things"]; // as the session numbers them
const openCard = async (page, n) => {
  await page.locator(`#grid .card[aria-posinset='${n}']`).focus();
  await page.keyboard.press("Enter");
  await page.locator("#detail h3", { hasText: "History" }).waitFor();
};
const openClass = async (page, name) => {
  await page.locator(".class-line", { hasText: name }).click();
  await page.locator("#heading", { hasText: name }).waitFor();
  await page.locator("#about", { hasText: "candidate" }).waitFor();
};

test("the history of a decision without a name and a time says what is known", async () => {
  const page = await openBare();
  await openCard(page, 1);
  assert.deepEqual(await page.locator("#detail .history li").allTextContents(), ["accepted"]);
});

test("without features the page says why nothing is similar and nothing measured", async () => {
  const page = await openBare();
  assert.match(await page.locator("#curve").textContent(), /started without features .* nothing to measure/);
  await page.locator("#grid .card[aria-posinset='2']").focus();
  await page.keyboard.press("s");
  await page.locator("#banner", { hasText: "started without features" }).waitFor();
  await openCard(page, 2);
  assert.equal(await page.getByRole("button", { name: "More like this" }).count(), 0);
});

test("candidates without captions are searched by id", async () => {
  const page = await openBare();
  await page.locator("#grid .card").first().focus();
  await page.keyboard.press("/");
  await page.keyboard.type("THING-3");
  await page.locator("#shown", { hasText: "1 of 8 shown" }).waitFor();
  assert.equal(await page.getByLabel("Id", { exact: true }).inputValue(), "THING-3");
});

test("a class without candidates is not a decided one, and its toolbar stays at the bottom", async () => {
  const page = await openBare();
  assert.equal(await page.locator("#progress").textContent(), "2 classes; 1 looked at");
  await openClass(page, "empty");
  await page.locator("#empty", { hasText: "no candidates" }).waitFor();
  const [bottom, height] = await page.evaluate(() => [document.getElementById("actions").getBoundingClientRect().bottom, innerHeight]);
  assert.ok(Math.abs(bottom - height) < 2, `${bottom} of ${height}`);
});

test("a missing picture says so each time it is shown, and nothing leads to it", async () => {
  const page = await openBare();
  const clean = page.locator("#clean .blank", { hasText: "no picture" });
  await clean.waitFor();
  await openClass(page, "empty");
  await openClass(page, "things");
  await clean.waitFor(); // now it is known before it is asked for
  const original = page.locator("#detail").getByRole("link", { name: "Original" });
  await openCard(page, 2);
  assert.equal(await original.count(), 1);
  await page.keyboard.press("Escape");
  await openCard(page, 8);
  await page.locator("#detail .full .blank", { hasText: "no picture" }).waitFor();
  assert.equal(await original.count(), 0);
});

test("the text of a class is a clean example that no picture is asked for", async () => {
  const page = await openBare();
  const asked = [];
  const isLost = (url) => /\/thumbnails\/[678]$/.test(url); // pictures that the class before lacks, whose answers may come late
  page.on("response", (answer) => { if (answer.status() === 404 && !isLost(answer.url())) asked.push(answer.url()); });
  await openClass(page, "empty");
  await page.locator("#clean .blank", { hasText: "text" }).waitFor();
  assert.deepEqual(await page.locator("#clean li").evaluateAll((items) => items.map((item) => item.title)),
    ["clean example: thing-0.png", "clean example: the text of the name"]);
  await page.locator("#clean img[src]").waitFor();
  assert.deepEqual(asked, []);
});
