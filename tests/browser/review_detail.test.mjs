// The detail view, and what is hostile, missing or broken.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_detail.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { hostileReview, HOSTILE } from "./review-data.mjs";
import { api, browser, contexts, focused, folder, open, openIn, output, start, startDemo } from "./review-page.mjs";

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
  await detail.locator(".history li", { hasText: "accepted by tester, " }).waitFor();
  assert.match(await detail.locator(".decided").textContent(), /accepted/);
  const near = detail.locator("button.near").first();
  const title = await near.getAttribute("aria-label");
  await near.click();
  await page.waitForFunction((id) => document.querySelector("#detail .facts").textContent.includes(id), title.split(": similarity")[0]);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement.classList.contains("card"));
  assert.equal((await api(page, "api/classes/0")).decision[row], 1);
});

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
    if (i === 10 || i === 11) await page.locator("#detail .full .blank", { hasText: i === 10 ? "no picture" : "picture cannot be decoded" }).waitFor();
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

test("a picture that could not be loaded once is asked for again", async () => {
  const { url } = await startDemo();
  const context = await browser.newContext();
  contexts.push(context);
  await context.route("**/thumbnails/*", (route) => route.fulfill({ status: 500, json: { error: "the disk is away" } }));
  const page = await openIn(context, url);
  await page.locator("#grid .card .blank", { hasText: "picture not loaded" }).first().waitFor();
  await context.unroute("**/thumbnails/*");
  await page.keyboard.press("End");
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.activeElement.querySelector?.("img")?.naturalWidth > 0);
});
