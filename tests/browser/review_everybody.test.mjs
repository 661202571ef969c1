// For everybody: reduced motion, contrast, phones, help.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_everybody.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { allSaved, api, open, overflow, rescored, serious, startDemo } from "./review-page.mjs";

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
    const sizes = await page.locator(".top button:visible, .line button:visible, .line select, #actions button:visible").evaluateAll((all) => all.flatMap((control) => {
      const { width, height } = control.getBoundingClientRect();
      return [width, height];
    }));
    assert.ok(Math.min(...sizes) >= 44, `large enough to touch: ${sizes}`);
    const card = page.locator("#grid .card[aria-posinset='2']");
    await card.tap({ position: { x: 30, y: 30 } });
    await page.locator("#actions [data-decide=accept]").tap();
    await allSaved(page);
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

test("help opens on ?, and an unknown address or a missing token is refused", async () => {
  const { url } = await startDemo();
  const page = await open(url);
  await page.keyboard.press("?");
  assert.match(await page.locator("#help").textContent(), /Backspace.*clear the decision.*Escape.*clear the selection/);
  await page.keyboard.press("Escape");
  const status = await page.evaluate(() => fetch("/api/session").then((answer) => answer.status));
  assert.ok(status >= 400);
});
