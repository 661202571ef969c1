// Opens the report of the sample run as a reader would: with a mouse, with a keyboard, on a phone, without scripts.
//
//   cargo run -p labelsieve-report --example sample_run -- RUN && labelsieve report RUN -o report.html
//   LABELSIEVE_REPORT=report.html node --test report.test.mjs

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const report = pathToFileURL(process.env.LABELSIEVE_REPORT ?? "report.html").href;
const hostile = "<script>alert('owned')</script>";
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let browser, page, requests, complaints;

const open = async (options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, colorScheme: "light", ...options });
  page = await context.newPage();
  requests = [];
  complaints = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => { complaints.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(report);
};
const texts = (selector) => page.locator(selector).allTextContents();
const backgroundOf = (selector) => page.locator(selector).first().evaluate((e) => getComputedStyle(e).backgroundColor);
const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
});
after(() => browser.close());
beforeEach(() => open());
afterEach(async () => {
  const outside = requests.filter((url) => url !== report && !url.startsWith("data:"));
  assert.deepEqual(outside, [], "no request leaves the page");
  assert.deepEqual(complaints, [], "nothing goes wrong on the way");
  await page.context().close();
});

test("the page forbids itself to ask anybody anything", async () => {
  const answer = await page.evaluate(() => fetch("https://example.org/").then(() => "answered", () => "refused"));
  assert.equal(answer, "refused");
  assert.ok(complaints.some((text) => text.includes("Content Security Policy")), "by its policy, not for lack of a network");
  complaints = [];
  requests = requests.filter((url) => !url.startsWith("https://example.org"));
});

test("tables sort by any column, both ways, group by group, and say so", async () => {
  const table = page.locator("#table-top-5 table");
  const heading = table.locator("thead th", { hasText: /^k = 1$/ });
  const firsts = () => table.locator("tbody").nth(1).locator("tr:not(.group) td:nth-of-type(1)").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  const before = await firsts();
  await heading.getByRole("button").click();
  assert.equal(await heading.getAttribute("aria-sort"), "descending");
  assert.deepEqual(await firsts(), [...before].sort((a, b) => b - a));
  await heading.getByRole("button").press("Enter");
  assert.equal(await heading.getAttribute("aria-sort"), "ascending");
  assert.deepEqual(await firsts(), [...before].sort((a, b) => a - b));
  assert.equal(await table.locator("tbody").nth(1).locator("tr").first().getAttribute("class"), "group", "headings stay on top");
  await table.locator("thead th.first button").click();
  assert.equal(await heading.getAttribute("aria-sort"), "none", "one column at a time");
  const names = await texts("#table-top-5 tbody:nth-of-type(2) tr:not(.group) th");
  assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })));
});

test("classes are found by part of their names, whatever the accents, and counted", async () => {
  const search = page.getByRole("searchbox", { name: "Find" });
  const count = (text) => page.waitForFunction((text) => document.getElementById("count").textContent === text, text, { timeout: 5000 });
  const visible = () => page.locator("article.class:visible").evaluateAll((all) => all.map((article) => article.dataset.name));
  const all = await visible();
  assert.equal(all.length, 8);
  await search.fill("EGLISE haut");
  await count("1 of 8 classes by name, 90 candidates in 1 class by caption or id");
  assert.deepEqual(await visible(), all.filter((name) => name.startsWith("Église")));
  await search.fill("nothing like it");
  await count("0 of 8 classes by name, no candidates by caption or id");
  assert.deepEqual(await visible(), []);
  await search.fill("");
  await count("8 classes");
  assert.deepEqual(await visible(), all);
  await page.getByLabel("Sort").selectOption("low");
  const means = await page.locator("article.class").evaluateAll((articles) => articles.map((article) => Number(article.dataset.mean)));
  assert.deepEqual(means, [...means].sort((a, b) => a - b));
});

test("names are text, never markup", async () => {
  const titles = await texts("article.class h3");
  assert.ok(titles.includes(hostile), titles.join());
  await page.getByRole("searchbox").fill("script");
  await page.waitForFunction(() => document.querySelectorAll("article.class:not([hidden])").length === 1);
  const article = page.locator("article.class:visible");
  await article.locator(".thumb").first().click();
  assert.ok((await page.locator("dialog dl").textContent()).includes(hostile));
  assert.ok((await page.locator("#about").textContent()).includes("</script><img src=x onerror=alert(1)>"));
  assert.equal(await page.locator("img[src=x]").count(), 0);
});

test("dark and light follow the system until somebody chooses, and the choice stays", async () => {
  const [light] = [await backgroundOf("body")];
  await page.getByRole("button", { name: "Use dark colours" }).click();
  const dark = await backgroundOf("body");
  assert.notEqual(dark, light);
  const ink = await page.locator("figure svg text").first().evaluate((text) => getComputedStyle(text).fill);
  assert.notEqual(ink, "rgb(29, 33, 41)", "figures follow");
  await page.reload();
  assert.equal(await backgroundOf("body"), dark);
  await page.getByRole("button", { name: "Use light colours" }).click();
  assert.equal(await backgroundOf("body"), light);
  await page.context().close();
  await open({ colorScheme: "dark" });
  assert.equal(await backgroundOf("body"), dark);
});

test("galleries are built when they come near, with pictures, ranks and marks", async () => {
  const built = () => page.locator("article.class:has(.thumb)").count();
  assert.ok((await built()) < 8, "not all at once");
  await page.locator("article.class").last().scrollIntoViewIfNeeded();
  const article = page.locator("article.class").last();
  await article.locator(".thumb img").first().waitFor();
  const loaded = await article.locator(".thumb img").first().evaluate((img) => img.decode().then(() => img.naturalWidth));
  assert.equal(loaded, 64);
  const list = article.getByRole("list", { name: /^Most relevant, ranks 1 to 30 of/ });
  const labels = await list.getByRole("button").evaluateAll((buttons) => buttons.map((button) => button.textContent));
  assert.match(labels[0], /^[✓✗] (ir)?relevant  relevance [01]\.\d\d rank #1.* number \d+$/);
  const scores = labels.map((label) => Number(label.match(/relevance ([\d.]+)/)[1]));
  assert.deepEqual(scores, [...scores].sort((a, b) => b - a));
  const marks = await article.locator(".thumb.irrelevant .mark").allTextContents();
  assert.ok(marks.length > 0 && marks.every((mark) => mark.startsWith("✗")), "told apart by sign, not by colour alone");
});

test("probabilities say what to keep, in words, as a line, and of each candidate", async () => {
  const article = page.locator("article.class").first();
  const advice = await article.locator(".advice").textContent();
  const [, threshold, kept, all] = advice.match(/^Keep those with a probability of (0\.\d\d) or more: (\d+) of (\d+) candidates, about \d+ % of them right, about \d+ % of all right ones\.$/);
  const [relevance, probability] = await article.locator(".about svg").all();
  assert.equal(await relevance.locator("line.ink").count(), 0);
  const line = await probability.locator("line.ink").evaluate((line) => ({ x: Number(line.getAttribute("x1")), width: line.ownerSVGElement.viewBox.baseVal.width }));
  assert.ok(Math.abs(line.x / line.width - Number(threshold)) < 0.001, `${line.x} of ${line.width}`);
  const { q, r } = await article.locator("script").evaluate((script) => JSON.parse(script.textContent).ranked);
  assert.equal(r.length, Number(all));
  // The page has hundredths: those at the very edge may be on either side of it.
  const least = Math.round(100 * Number(threshold));
  assert.ok(q.filter((p) => p > least).length <= Number(kept) && Number(kept) <= q.filter((p) => p >= least).length, advice);
  await article.scrollIntoViewIfNeeded();
  await article.locator(".thumb").nth(3).click();
  assert.match(await page.getByRole("dialog").textContent(), /probability[01]\.\d\d/);
  await page.keyboard.press("Escape");
  assert.ok((await texts("#table-all-classes thead th")).some((heading) => heading.includes("keep ≥")));
  assert.equal(await page.locator("#figure-reliability svg").count(), 2, "wide and narrow");
});

test("a keyboard is enough", async () => {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.locator("#classes").scrollIntoViewIfNeeded();
  const list = page.getByRole("list", { name: /^Most relevant/ }).first();
  const thumbs = list.getByRole("button");
  await thumbs.first().waitFor();
  assert.equal(await list.locator(".thumb[tabindex='0']").count(), 1, "one tab stop per list");
  await thumbs.first().focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.evaluate(() => document.activeElement.textContent), /rank #3(?!\d)/);
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  assert.match(await dialog.textContent(), /rank3/);
  assert.match(await dialog.textContent(), /closest clean example/);
  await page.keyboard.press("ArrowRight");
  assert.match(await dialog.textContent(), /rank4/);
  await page.keyboard.press("Escape");
  // The dialog says that it is closed some time after it is.
  await page.waitForFunction(() => /rank #4(?!\d)/.test(document.activeElement.textContent), null, { timeout: 10_000 });
});

test("a screen reader finds landmarks, headings, captions and descriptions", async () => {
  for (const role of ["main", "banner", "contentinfo", "search"]) assert.equal(await page.getByRole(role).count(), 1, role);
  assert.equal(await page.getByRole("navigation", { name: "Sections" }).count(), 1);
  assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1);
  const levels = await page.locator("main :is(h1,h2,h3,h4)").evaluateAll((all) => all.map((heading) => Number(heading.tagName[1])));
  levels.reduce((last, level) => { assert.ok(level <= last + 1, `level ${level} after ${last}`); return level; }, 1);
  const unnamed = await page.locator("figure svg:visible").evaluateAll((all) => all.filter((svg) =>
    svg.getAttribute("role") !== "img" || svg.getAttribute("aria-labelledby").split(" ").some((id) => !document.getElementById(id)?.textContent)).length);
  assert.equal(unnamed, 0);
  assert.ok((await texts("table caption")).every((caption) => caption.length > 10));
  const ids = await page.locator("[id]").evaluateAll((all) => all.map((element) => element.id));
  assert.equal(new Set(ids).size, ids.length, "ids are unique");
  const nameless = await page.locator("button:visible, input:visible, select:visible").evaluateAll((all) =>
    all.filter((e) => !e.getAttribute("aria-label") && !e.textContent.trim() && !e.closest("label")).length);
  assert.equal(nameless, 0);
});

test("galleries come first, and every section is where its link leads", async () => {
  const sections = await page.locator("main > section").evaluateAll((all) => all.map((section) => section.id));
  assert.deepEqual(sections, ["classes", "tables", "figures", "about"]);
  for (const name of ["Figures", "Tables", "Classes"]) {
    await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name }).click();
    await page.waitForTimeout(400); // galleries above may still grow
    const top = await page.locator(`#${name.toLowerCase()}`).evaluate((section) => section.getBoundingClientRect().top);
    assert.ok(Math.abs(top) < 120, `${name} starts ${top} pixels below the top`);
  }
});

test("a class in a table links to its gallery", async () => {
  const table = page.locator("#table-all-classes");
  assert.equal(await table.locator("tbody th a").count(), 8);
  await table.getByRole("link", { name: "crane" }).click();
  const article = page.locator("article.class", { has: page.locator("h3", { hasText: /^crane$/ }) });
  assert.equal(await page.evaluate(() => location.hash), `#${await article.getAttribute("id")}`);
  await page.waitForTimeout(400);
  const top = await article.evaluate((element) => element.getBoundingClientRect().top);
  assert.ok(top >= 0 && top < 300, `the gallery starts at ${top}`);
});

test("simulated noise is called simulated wherever it matters", async () => {
  assert.match(await page.getByRole("note").textContent(), /^Simulated noise\./);
  for (const selector of [".result h3", "figure h3", "#classes > h2"]) {
    assert.ok((await texts(selector)).every((heading) => heading.includes("simulated noise")), selector);
  }
});

for (const width of [375, 320]) {
  test(`a phone of ${width} pixels needs no sideways scrolling`, async () => {
    await page.context().close();
    await open({ viewport: { width, height: 800 }, isMobile: true, hasTouch: true });
    assert.equal(await overflow(), 0);
    for (const article of await page.locator("article.class").all()) await article.scrollIntoViewIfNeeded();
    assert.equal(await overflow(), 0, "with galleries");
    const sizes = await page.locator("figure .narrow svg text").evaluateAll((all) => all.map((text) => {
      const svg = text.ownerSVGElement;
      return parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    }));
    assert.ok(Math.min(...sizes) > 9.5, `labels of figures stay readable: ${Math.min(...sizes)}`);
    const touch = await page.locator(".thumb").first().boundingBox();
    assert.ok(touch.width >= 44 && touch.height >= 44, "large enough to touch");
  });
}

test("paper has all the pictures, in light colours", async () => {
  await page.getByRole("button", { name: "Use dark colours" }).click();
  await page.emulateMedia({ media: "print" });
  assert.equal(await backgroundOf("body"), "rgb(255, 255, 255)");
  assert.equal(await page.locator(".tools").isVisible(), false);
  await page.emulateMedia({ media: null });
  assert.ok(await page.locator(".thumb img[src]").count() < 300, "not all of them before");
  const pdf = await page.pdf({ printBackground: true, format: "A4" });
  assert.equal(await page.locator(".thumb img[src]").count(), 8 * 63);
  assert.ok(pdf.toString("latin1").split("/Subtype /Image").length > 8 * 63, "on the paper itself");
  assert.equal(await page.locator("details[open]").count(), 0, "what was folded is folded again");
});

test("no label of a figure is cut off or runs into another", async () => {
  const clashes = await page.locator("figure .wide svg").evaluateAll((all) => all.flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].filter((text) => !text.hasAttribute("transform"))
      .map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
    const cut = boxes.filter(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      .map(({ text }) => `cut: ${text}`);
    const over = boxes.flatMap((a, i) => boxes.slice(i + 1)
      .filter((b) => a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1 && a.box.top < b.box.bottom - 3 && b.box.top < a.box.bottom - 3)
      .map((b) => `over: ${a.text} | ${b.text}`));
    return [...cut, ...over];
  }));
  assert.deepEqual(clashes, []);
});

test("without scripts, tables and figures are all there", async () => {
  await page.context().close();
  await open({ javaScriptEnabled: false });
  assert.equal(await page.locator("#table-top-1 tbody tr:not(.group)").count(), 7);
  assert.ok((await page.locator("figure .wide svg").count()) >= 5);
  assert.match(await page.locator("noscript").first().innerText(), /need JavaScript/);
  assert.equal(await page.locator("#theme").isVisible(), false, "no button that does nothing");
});
