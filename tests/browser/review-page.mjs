// What every test of the review needs: a browser, a server that ends with its test, and words for what a person does and sees.
// After each test nothing may have been asked of another machine, and nothing may have gone wrong in the console.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before } from "node:test";
import { chromium } from "playwright-core";
import { demoArguments, serve } from "./review-server.mjs";

const demo = process.env.LABELSIEVE_DEMO ?? "labelsieve-demo";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export let browser, folder;
export let contexts = []; // of the test under way
let servers = [], requests = [], complaints = [];

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
  folder = mkdtempSync(join(tmpdir(), "labelsieve-review-"));
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  for (const context of contexts) await context.close();
  for (const server of servers) await server.stop();
  const own = servers.map((server) => new URL(server.url).origin);
  const outside = requests.filter((url) => !url.startsWith("blob:") && !own.includes(new URL(url).origin));
  const wrong = complaints;
  servers = [];
  contexts = [];
  requests = [];
  complaints = [];
  assert.deepEqual(outside, [], "no request leaves the machine");
  assert.deepEqual(wrong, [], "nothing goes wrong on the way");
});

let numbered = 0;
export const output = (ending = "parquet") => join(folder, `decisions-${numbered += 1}.${ending}`);
export const start = async (...args) => {
  const server = await serve(...args);
  servers.push(server);
  return server;
};
export const demoFile = (name) => join(demo, name);
export const startDemo = (decisions = output()) => start(...demoArguments(demo, decisions), "--by", "tester");

export const open = async (url, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  contexts.push(context);
  return openIn(context, url);
};
export const openIn = async (context, url) => {
  const page = await context.newPage();
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    // The browser itself tells of every answer that is not a success; pictures may be missing, and servers die here.
    if (["error", "warning"].includes(message.type()) && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
  page.on("dialog", (dialog) => { complaints.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(url);
  await page.locator("#grid .card").first().waitFor();
  return page;
};

/** The card with the focus: row, id, label, decision saved and shown, relevance, where it is on the screen. */
export const focused = (page) => page.evaluate(() => {
  const card = document.activeElement;
  if (!card?.classList.contains("card")) return { tag: card?.tagName, id: card?.id };
  const { x, y } = card.getBoundingClientRect();
  return { row: card.row, id: card.data.id[card.row], label: card.textContent, saved: card.data.decision[card.row], relevance: card.data.relevance[card.row], x, y };
});
export const cardOf = (page, row) => page.evaluate((row) => {
  const card = [...document.querySelectorAll("#grid .card")].find((one) => one.row === row && !one.hidden);
  return card && { label: card.textContent, saving: card.classList.contains("saving"), mark: card.querySelector(".mark").hidden ? "" : card.querySelector(".mark").dataset.text, y: card.getBoundingClientRect().y };
}, row);
export const saved = (page, n) => page.waitForFunction((text) => document.getElementById("status").textContent.startsWith(text), `Saved · ${n} decision`, { timeout: 30_000 });
/** Waits until nothing is on its way to the disk any more. */
export const allSaved = (page) => page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Saved"), null, { timeout: 30_000 });
export const api = (page, path) => page.evaluate((path) => fetch(path).then((answer) => answer.json()), path);
export const until = async (page, path, holds) => {
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    if (holds(await api(page, path))) return;
    await page.waitForTimeout(50);
  }
  assert.fail(`${path} never became what was expected`);
};
export const rescored = (page, c, revision) => until(page, `api/classes/${c}/scores`, (scores) => scores.revision > revision);
export const differ = (a, b) => a.some((value, i) => value !== b[i]);
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
export const serious = async (page, what) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 40).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
  assert.deepEqual(bad, [], what);
};
