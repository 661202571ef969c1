// All candidates of a report: found, linked, decided about, printed, and quick when there are 100,000.
//
//   LABELSIEVE=target/debug/labelsieve node --test report_candidates.test.mjs

import assert from "node:assert/strict";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { HOSTILE, hostileReport, largeReport } from "./report_fixture.mjs";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const pictures = process.env.LABELSIEVE_SCREENSHOTS; // a folder for screenshots, for people

let browser, hostile;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
  hostile = hostileReport();
  if (pictures) mkdirSync(pictures, { recursive: true });
});
after(() => browser.close());

/** Opens a report for `look`, which must cause no complaint and no request. */
const on = async (path, look, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => { complaints.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  const address = pathToFileURL(path).href;
  page.on("request", (request) => { if (!request.url().startsWith("data:") && request.url().split("#")[0] !== address) complaints.push(request.url()); });
  await page.goto(address);
  await look(page, context);
  assert.deepEqual(complaints, []);
  await context.close();
};
const articleOf = (page, name) => page.locator(`article.class[data-name="${name}"]`);
const counts = (page, text) => page.waitForFunction((text) => document.getElementById("count").textContent === text, text, { timeout: 5000 });
const screenshot = async (page, name) => { if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` }); };
const serious = async (page) => {
  // The page's policy forbids other scripts; the protocol does not ask it.
  await page.evaluate(await import("node:fs").then((fs) => fs.readFileSync(axe, "utf8")));
  const { violations } = await page.evaluate(() => axe.run(document));
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0].html}`);
};

test("every candidate can be reached, with rank, relevance, caption, id and original", () => on(hostile.path, async (page) => {
  const cat = articleOf(page, "cat");
  await cat.locator(".thumb").first().waitFor();
  assert.match(await page.locator("#classes > p").first().textContent(), /pictures of 49 of 459; the others are listed/);
  const titles = await cat.locator("h4").allTextContents();
  assert.deepEqual(titles, ["Most relevant, ranks 1 to 20 of 450", "Middle, ranks 226 to 235 of 450", "Least relevant, ranks 441 to 450 of 450"]);
  const gaps = cat.locator(".more");
  assert.deepEqual(await gaps.allTextContents(), ["Show ranks 21 to 225: 205 candidates without a picture here", "Show ranks 236 to 440: 205 candidates without a picture here"]);
  await gaps.nth(1).click();
  await gaps.first().press("Enter");
  assert.equal(await gaps.first().getAttribute("aria-expanded"), "true");
  await cat.locator(".row").first().waitFor();
  const row = cat.getByRole("list", { name: "Ranks 21 to 120" }).locator("li").first();
  assert.match(await row.textContent(), /^ rank #21 relevance 0\.96a cat, number 20, awakecat\/0020\.pngoriginal$/);
  while (await cat.locator(".waiting").count() > 0) {
    await cat.locator(".waiting").evaluateAll(([first]) => first?.scrollIntoView());
    await page.waitForTimeout(50);
  }
  const labels = (await cat.locator(".item").allTextContents()).map((text) => Number(text.match(/rank #(\d+)/)[1]));
  assert.deepEqual(labels, Array.from({ length: 450 }, (_, i) => i + 1), "all of them, in order");
  await gaps.first().click();
  assert.equal(await cat.locator(".item").count(), 245, "and away again");
}));

test("a keyboard walks through rows and through the dialog, also where nothing is built yet", () => on(hostile.path, async (page) => {
  const cat = articleOf(page, "cat");
  await cat.locator(".more").first().press("Enter");
  await page.keyboard.press("Tab");
  const label = () => page.evaluate(() => document.activeElement.textContent.trim());
  assert.match(await label(), /^rank #21 /);
  for (let i = 0; i < 150; i += 1) await page.keyboard.press("ArrowDown");
  assert.match(await label(), /^rank #171 /, "over the end of a chunk of 100");
  await page.keyboard.press("ArrowUp");
  assert.match(await label(), /^rank #170 /);
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  for (let i = 0; i < 80; i += 1) await page.keyboard.press("ArrowRight");
  assert.match(await dialog.textContent(), /rank250/, "into the second gap, which is closed");
  assert.match(await dialog.textContent(), /captiona cat, number 249/);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement.textContent.startsWith(" rank #170 "), null, { timeout: 5000 });
}));

test("originals are linked by relative paths, whatever their names", () => on(hostile.path, async (page) => {
  const owl = articleOf(page, "owl");
  await owl.scrollIntoViewIfNeeded();
  const links = await owl.locator("a.original").evaluateAll((all) => all.map((a) => ({ raw: a.getAttribute("href"), url: a.href, target: a.target, rel: a.rel })));
  assert.equal(links.length, HOSTILE.length + 1);
  for (const { raw, url, target, rel } of links) {
    assert.ok(raw.startsWith("../photos/") && !/[\s"'<>#?:]/.test(raw.replaceAll("'", "")), raw);
    assert.ok(existsSync(fileURLToPath(url)), url);
    assert.equal(target, "_blank");
    assert.ok(rel.includes("noopener"));
  }
  const names = links.map(({ url }) => fileURLToPath(url).split("/photos/")[1]).sort();
  assert.deepEqual(names, ["clean.png", ...HOSTILE].sort());
  assert.equal(await page.locator("img[src=x]").count(), 0);
}));

test("an original opens in a tab of its own", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(pathToFileURL(hostile.path).href);
  await articleOf(page, "owl").scrollIntoViewIfNeeded();
  await articleOf(page, "owl").locator(".thumb", { hasText: "" }).nth(1).click();
  const [tab] = await Promise.all([context.waitForEvent("page"), page.getByRole("dialog").getByRole("link", { name: "open the original" }).last().click()]);
  await tab.waitForLoadState();
  assert.match(decodeURIComponent(tab.url()), /photos\/javascript:alert\(1\)\.png$/);
  assert.equal(await tab.locator("img").evaluate((img) => img.naturalWidth), 1);
  await context.close();
});

test("captions and ids are searched too, and the number of finds is told", () => on(hostile.path, async (page) => {
  const search = page.getByRole("searchbox", { name: "Find" });
  await search.fill("asleep cat number 49");
  await counts(page, "0 of 2 classes by name, 1 candidate in 1 class by caption or id");
  assert.equal(await articleOf(page, "owl").isVisible(), false);
  await page.locator(".row").first().waitFor();
  assert.deepEqual(await page.locator(".item:visible").allTextContents(), [" rank #50 relevance 0.89a cat, number 49, asleepcat/0049.png"]);
  await search.fill("GROßE");
  await counts(page, "0 of 2 classes by name, 1 candidate in 1 class by caption or id");
  await page.locator(".row").first().waitFor();
  assert.equal(await page.locator(".row .words").evaluate((words) => getComputedStyle(words).unicodeBidi), "isolate", "marks of direction stay inside");
  assert.equal(await page.locator(".gallery b", { hasText: "bold" }).count(), 0, "text, not markup");
  await search.fill("part#2");
  await counts(page, "0 of 2 classes by name, 1 candidate in 1 class by caption or id");
  await articleOf(page, "owl").locator(".thumb").nth(1).waitFor();
  await search.fill("asleep");
  await counts(page, "0 of 2 classes by name, 65 candidates in 1 class by caption or id");
  const heading = page.locator("h4", { hasText: "Matches with a picture" });
  await heading.waitFor();
  assert.equal(await heading.textContent(), "Matches with a picture (6)");
  await search.fill("cat");
  await counts(page, "1 of 2 classes by name, 450 candidates in 1 class by caption or id");
  await page.locator("h4", { hasText: "Most relevant" }).waitFor();
}));

test("decisions are marked in words, counted, and filtered by", () => on(hostile.path, async (page) => {
  const cat = articleOf(page, "cat");
  await cat.locator(".thumb").first().waitFor();
  assert.deepEqual((await cat.locator(".decision").allTextContents()).slice(0, 3), ["accepted", "rejected", "unsure"]);
  assert.match(await cat.locator(".thumb").nth(1).textContent(), /^rejected relevance 1\.00 rank #2/);
  const tiles = await page.locator(".tiles div").evaluateAll((all) => all.map((tile) => tile.textContent));
  for (const tile of ["accepted1", "rejected2", "unsure1"]) assert.ok(tiles.includes(tile), tiles.join());
  assert.match(await cat.locator(".about p").textContent(), /1 accepted; 2 rejected; 1 unsure$/);
  assert.equal(await page.locator("#table-all-classes tbody tr").first().textContent(), "cat04500.50225.5121");
  await page.getByRole("combobox", { name: "Decision", exact: true }).selectOption("rejected");
  await counts(page, "2 candidates in 1 class");
  await cat.locator(".row").waitFor();
  assert.deepEqual((await cat.locator(".item").allTextContents()).map((text) => text.match(/#(\d+)/)[1]), ["2", "301"]);
  await page.getByRole("combobox", { name: "Decision", exact: true }).selectOption("undecided");
  await counts(page, "455 candidates in 2 classes");
  await page.getByRole("combobox", { name: "Decision", exact: true }).selectOption("any");
  await counts(page, "2 classes");
}));

test("the report says how to review its candidates", () => on(hostile.path, async (page, context) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const command = "labelsieve review relevance.csv --images photos -o decisions.csv";
  assert.equal(await page.locator("#review-command").textContent(), command);
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);
}));

for (const [name, options] of [["light", {}], ["dark", { colorScheme: "dark" }], ["phone", { viewport: { width: 375, height: 800 }, isMobile: true, hasTouch: true }]]) {
  test(`nothing is in anybody's way: ${name}`, () => on(hostile.path, async (page) => {
    await page.locator("article.class").first().evaluate((article) => article.scrollIntoView());
    await page.locator(".more").first().click();
    await page.locator(".row").first().waitFor();
    await screenshot(page, `gallery-${name}`);
    assert.deepEqual(await serious(page), []);
    await page.locator(".row").first().click();
    await screenshot(page, `detail-${name}`);
    assert.deepEqual(await serious(page), [], "in the dialog");
    await page.keyboard.press("Escape");
    await page.locator("#tables").scrollIntoViewIfNeeded();
    await screenshot(page, `tables-${name}`);
  }, options));
}

test("a placeholder is dark in the dark", () => on(hostile.path, async (page) => {
  const brightness = await page.evaluate(() => {
    const blank = document.body.appendChild(Object.assign(document.createElement("span"), { className: "blank" }));
    return Math.max(...getComputedStyle(blank).backgroundColor.match(/\d+/g).slice(0, 3).map(Number));
  });
  assert.ok(brightness < 80, `${brightness}`);
}, { colorScheme: "dark" }));

for (const width of [375, 320]) {
  test(`no column is cut off on a phone of ${width} pixels`, () => on(hostile.path, async (page) => {
    const { scroll, client } = await page.locator("#table-all-classes .scroll").evaluate((e) => ({ scroll: e.scrollWidth, client: e.clientWidth }));
    if (width === 375) assert.ok(scroll <= client, `${scroll} of ${client}`);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
  }, { viewport: { width, height: 800 }, isMobile: true, hasTouch: true }));
}

test("100,000 candidates open quickly, scroll smoothly and are searched at once", async (t) => {
  const path = largeReport();
  const megabytes = statSync(path).size / 1e6;
  assert.ok(megabytes < 20, `${megabytes} MB`);
  await on(path, async (page) => {
    const loaded = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
    await page.evaluate(() => {
      window.longest = 0;
      new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration); }).observe({ type: "longtask", buffered: true });
    });
    const article = page.locator("article.class").first();
    await article.locator(".more").first().click();
    await article.locator(".row").first().waitFor();
    const height = await article.locator(".chunks").first().evaluate((chunks) => chunks.getBoundingClientRect().height);
    for (let step = 1; step <= 20; step += 1) {
      await page.evaluate((y) => scrollTo(0, y), step * height / 21);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
    assert.equal(await article.locator(".chunks").first().evaluate((chunks) => chunks.getBoundingClientRect().height), height, "nothing jumps");
    assert.ok(await article.locator(".row").count() < 6000, "only what was near is built");
    const scrolling = await page.evaluate(() => { const { longest } = window; window.longest = 0; return longest; });
    const start = Date.now();
    await page.getByRole("searchbox").fill("number 77777");
    await counts(page, "0 of 5 classes by name, 1 candidate in 1 class by caption or id");
    const search = Date.now() - start;
    t.diagnostic(`${megabytes.toFixed(1)} MB, open after ${Math.round(loaded)} ms, longest task while scrolling ${Math.round(scrolling)} ms, first search ${search} ms`);
    assert.ok(loaded < 10_000 && search < 10_000, "on any machine");
  });
});
