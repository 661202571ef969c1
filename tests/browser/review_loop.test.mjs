// The whole loop: a person decides by keyboard, the relevance follows, the server dies, and the classifier gets better.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node --test review_loop.test.mjs

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isRelevant } from "./review-data.mjs";
import { allSaved, api, cardOf, demoFile, differ, focused, folder, open, output, rescored, startDemo } from "./review-page.mjs";
import { labelsieve } from "./review-server.mjs";

test("a person decides by keyboard, the relevance follows, nothing is lost, and the classifier gets better", async (t) => {
  const decisions = output();
  const server = await startDemo(decisions);
  let page = await open(server.url);
  const session = await api(page, "api/session");
  assert.equal(session.classes.length, 32);
  const nameOf = (c) => session.classes[c].name.split(":")[0];

  // The first card has the focus: no mouse, no Tab.
  const first = await focused(page);
  assert.equal(typeof first.row, "number", JSON.stringify(first));
  const before = await api(page, "api/classes/0");

  await page.keyboard.press(isRelevant(nameOf(0), first.id) ? "a" : "r");
  await allSaved(page);
  const second = await focused(page);
  assert.notEqual(second.row, first.row, "the focus moves on by itself");
  assert.match((await cardOf(page, first.row)).label, /accepted$|rejected$/);
  assert.ok(Math.abs((await cardOf(page, first.row)).y - first.y) < 1, "nothing jumps");
  await rescored(page, 0, before.revision);
  const moved = await api(page, "api/classes/0/scores");
  assert.ok(differ(moved.relevance, before.relevance), "the relevance follows");
  await page.waitForFunction(([row, value]) => {
    const card = [...document.querySelectorAll("#grid .card")].find((one) => one.row === row);
    return Math.abs(card.data.relevance[row] - value) < 1e-6;
  }, [second.row, moved.relevance[second.row]], { timeout: 30_000 });
  assert.equal((await focused(page)).row, second.row, "without losing the place");

  // Undo leads back, redo does it again.
  await page.keyboard.press("z");
  await page.waitForFunction((row) => document.activeElement.row === row && document.activeElement.data.decision[row] === 0, first.row);
  await page.keyboard.press("Shift+Z");
  await page.waitForFunction((row) => document.activeElement.data.decision[row] !== 0, first.row);

  // Five decisions for every class, as the truth is.
  let n = 0;
  for (let visited = 0; visited < session.classes.length; visited += 1) {
    if (visited > 0) {
      const heading = await page.locator("#heading").textContent();
      await page.keyboard.press("n");
      await page.waitForFunction((old) => document.getElementById("heading").textContent !== old && document.activeElement.data?.class !== undefined
        && document.getElementById("about").textContent.includes("candidates:"), heading, { timeout: 60_000 });
    }
    for (let k = 0; k < 5; k += 1) {
      const at = await focused(page);
      const c = await page.evaluate(() => document.activeElement.data.class);
      const relevant = isRelevant(nameOf(c), at.id);
      assert.notEqual(relevant, undefined, `truth of ${nameOf(c)} ${at.id}`);
      await page.keyboard.press(relevant ? "a" : "r");
      n += 1;
    }
  }
  await page.waitForFunction(() => document.getElementById("status").dataset.state === "saved", null, { timeout: 60_000 });
  const decided = (await api(page, "api/session")).n_decisions;
  assert.ok(decided >= n, `${decided} decisions of ${n}`);

  // A reload comes back to the same class; so does a new server after kill -9.
  const heading = await page.locator("#heading").textContent();
  await page.reload();
  await page.locator("#grid .card").first().waitFor();
  assert.equal(await page.locator("#heading").textContent(), heading);
  await server.kill();
  await page.locator("#banner", { hasText: "does not answer" }).waitFor({ timeout: 15_000 });
  const lost = await focused(page);
  await page.keyboard.press("a");
  await page.locator("#banner", { hasText: "Not saved" }).waitFor({ timeout: 15_000 });
  assert.deepEqual([(await cardOf(page, lost.row)).mark, (await cardOf(page, lost.row)).saving], ["", false], "what was not saved does not look saved");

  const again = await startDemo(decisions);
  page = await open(again.url);
  const resumed = await api(page, "api/session");
  assert.equal(resumed.n_decisions, decided, "kill -9 loses nothing");
  assert.equal(await page.locator("#heading").textContent(), heading, "resumes where it stopped");

  // The download says the same, one line per decision.
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#download").click()]);
  const csv = readFileSync(await download.path(), "utf8").trim().split("\n");
  assert.match(csv[0], /^id,class,decision,by,at/);
  assert.ok(csv.length > n);
  await again.stop();

  // What the page says makes the relevance permanent, and the classifier better.
  const tested = (relevance, name) => {
    const model = join(folder, `${name}.safetensors`);
    labelsieve("train", "--clean", demoFile("clean.parquet"), "--pool", demoFile("pool.parquet"), "--relevance", relevance, "-o", model, "--device", "cpu", "-q");
    return JSON.parse(labelsieve("evaluate", "--model", model, "--test", demoFile("test.parquet"), "--device", "cpu", "--json")).top_1;
  };
  const relevance = join(folder, "decided.parquet");
  labelsieve("score", "--clean", demoFile("clean.parquet"), "--pool", demoFile("pool.parquet"), "--candidates", demoFile("candidates.parquet"),
    "--decisions", decisions, "--device", "cpu", "-o", relevance, "-q");
  const [without, with_] = [tested(demoFile("relevance.parquet"), "before"), tested(relevance, "after")];
  t.diagnostic(`top-1 on icons held out: ${without} before, ${with_} after five decisions per class`);
  assert.ok(with_ > without, `${with_} after, ${without} before`);
});
