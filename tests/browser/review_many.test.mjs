// Very many candidates.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_many.test.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { manyCandidates } from "./review-data.mjs";
import { browser, folder, open, output, saved, start } from "./review-page.mjs";

/**
 * Durations of the tasks of pages while `action` runs, in milliseconds: by the clock, and of the processor. Long tasks are
 * those above 50 ms; where other programs keep the processor busy, the clock counts their time too.
 */
const tasksDuring = async (action) => {
  const session = await browser.newBrowserCDPSession();
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value.filter(({ name }) => name === "RunTask" || name === "thread_name")));
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["disabled-by-default-devtools.timeline", "__metadata"] } });
  const result = await action();
  const complete = new Promise((resolve) => { session.once("Tracing.tracingComplete", resolve); });
  await session.send("Tracing.end");
  await complete;
  const threadOf = ({ pid, tid }) => `${pid} ${tid}`;
  const pages = new Set(events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(threadOf));
  const tasks = events.filter((event) => event.name === "RunTask" && pages.has(threadOf(event)) && event.tdur !== undefined);
  return { result, n: tasks.length, clock: tasks.map(({ dur }) => dur / 1000), processor: tasks.map(({ tdur }) => tdur / 1000) };
};

test("100,000 candidates scroll without long tasks", async (t) => {
  const n = 100_000;
  const { relevance, pictures } = manyCandidates(folder, n);
  const { url } = await start(relevance, "--images", pictures, "-o", output());
  const page = await open(url);
  assert.match(await page.locator("#shown").textContent(), /^100,000 candidates$/);
  await page.waitForTimeout(2000);
  const scroll = () => page.evaluate(async () => {
    const scroller = document.getElementById("grid");
    const started = performance.now();
    let frames = 0;
    await new Promise((done) => {
      const step = () => {
        const passed = performance.now() - started;
        if (passed > 5000) { done(); return; }
        frames += 1;
        // First as fast as a wheel, then in leaps, as somebody drags the scroll bar.
        scroller.scrollTop = passed < 3000 ? 2 * passed : scroller.scrollTop + scroller.scrollHeight / 150;
        requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    });
    return { frames: frames / 5, cards: document.querySelectorAll("#grid .card").length };
  });
  const { result: { frames, cards }, n: nTasks, clock, processor } = await tasksDuring(scroll);
  const longest = Math.max(...processor);
  t.diagnostic(`${frames.toFixed(0)} frames per second; ${nTasks} tasks, the longest ${longest.toFixed(1)} ms of the processor; by the clock ${clock.filter((ms) => ms > 50).length} above 50 ms; ${cards} cards in the document`);
  assert.ok(nTasks > 100, "tasks were seen");
  assert.ok(cards < 200, "cards are used again");
  assert.ok(longest < 50, `a task of ${longest} ms`);
  await page.locator("#grid .card img[src]").first().waitFor();
  await page.keyboard.press("End");
  await page.waitForFunction((n) => document.activeElement.getAttribute("aria-posinset") === String(n), n);
  await page.keyboard.press("a");
  await saved(page, 1);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("u");
  await saved(page, "100,000");
  await page.keyboard.press("z");
  await saved(page, 1);
});

test("more than a million candidates sort by relevance, equal ones as in the file", async () => {
  const { relevance, pictures } = manyCandidates(folder, 3);
  const { url } = await start(relevance, "--images", pictures, "-o", output());
  const page = await open(url);
  const wrong = await page.evaluate(async () => {
    const { byRelevance } = await import(new URL("order.js", location.href));
    const n = 1_300_000;
    const relevance = Float32Array.from({ length: n }, (_, row) => ((row * 7919) % 1009) / 1008);
    let wrong = 0;
    for (const descending of [true, false]) {
      const rows = byRelevance(relevance, descending);
      for (let at = 1; at < n; at += 1) {
        const [a, b] = [rows[at - 1], rows[at]];
        const rises = descending ? relevance[b] - relevance[a] : relevance[a] - relevance[b];
        if (rises > 0 || (rises === 0 && b <= a)) wrong += 1;
      }
    }
    return wrong;
  });
  assert.equal(wrong, 0);
});
