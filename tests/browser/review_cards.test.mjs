// The cards of a class: they keep their places, show what is saved, and are selected by key and mouse.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_cards.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { allSaved, api, cardOf, focused, open, rescored, startDemo, until } from "./review-page.mjs";

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
  await allSaved(page);
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
  await allSaved(page);
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

test("a click with Shift or Control selects, also where the marks of a card are", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  const mark = async (n, key) => {
    const card = page.locator(`#grid .card[aria-posinset='${n}']`);
    await card.hover();
    await card.locator("[data-quick=accept]").click({ modifiers: [key] });
  };
  await mark(3, "Shift");
  assert.equal(await page.locator("#chosen").textContent(), "3 pictures selected");
  await mark(5, "Control");
  assert.equal(await page.locator("#chosen").textContent(), "4 pictures selected");
  assert.equal((await api(page, "api/session")).n_decisions, 0);
});
