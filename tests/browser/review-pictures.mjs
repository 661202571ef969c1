// Takes the pictures of the review for the README: one page as it looks, and a walk as an animated PNG.
//
//   LABELSIEVE=target/debug/labelsieve LABELSIEVE_DEMO=labelsieve-demo node review-pictures.mjs ../../docs/images

import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { deflateSync, inflateSync } from "node:zlib";
import { chromium } from "playwright-core";
import { chunk, isRelevant } from "./review-data.mjs";
import { demoArguments, serveIn } from "./review-server.mjs";

const images = process.argv[2] ?? "../../docs/images";
const demo = process.env.LABELSIEVE_DEMO ?? "labelsieve-demo";
const CLASS = "mouse";

/** Chunks of a PNG file: name and contents. */
const chunksOf = (file) => {
  const chunks = [];
  for (let at = 8; at < file.length;) {
    const length = file.readUInt32BE(at);
    chunks.push({ name: file.toString("latin1", at + 4, at + 8), data: file.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
};
const numbers = (...values) => {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32BE(value, 4 * i));
  return bytes;
};

/** One animated PNG of pictures of the same size, each shown for its milliseconds, for ever. */
const animated = (frames) => {
  const head = chunksOf(frames[0].file).find(({ name }) => name === "IHDR").data;
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  const parts = [Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("acTL", numbers(frames.length, 0))];
  let sequence = 0;
  frames.forEach(({ file, ms }, i) => {
    const delay = Buffer.alloc(6);
    delay.writeUInt16BE(ms, 0);
    delay.writeUInt16BE(1000, 2);
    parts.push(chunk("fcTL", Buffer.concat([numbers(sequence, width, height, 0, 0), delay])));
    sequence += 1;
    const packed = Buffer.concat(chunksOf(file).filter(({ name }) => name === "IDAT").map(({ data }) => data));
    const data = deflateSync(inflateSync(packed), { level: 9 });
    if (i === 0) parts.push(chunk("IDAT", data));
    else { parts.push(chunk("fdAT", Buffer.concat([numbers(sequence), data]))); sequence += 1; }
  });
  return Buffer.concat([...parts, chunk("IEND", Buffer.alloc(0))]);
};

const folder = mkdtempSync(join(tmpdir(), "labelsieve-pictures-"));
// Short paths, as a person would see them: the page shows where decisions go and with which command.
symlinkSync(resolve(demo), join(folder, "labelsieve-demo"));
const server = await serveIn(folder, ...demoArguments("labelsieve-demo", "decisions.parquet"), "--title", "icons of the demo", "--by", "anna");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage({ viewport: { width: 1216, height: 720 }, colorScheme: "light", reducedMotion: "reduce" });
  await page.goto(server.url);
  await page.locator("#grid .card").first().waitFor();
  await page.locator("#find-class").fill(CLASS);
  await page.keyboard.press("Enter");
  // The class is open once one of its cards has the focus; the heading is there before.
  await page.waitForFunction((name) => document.activeElement.classList.contains("card") && document.getElementById("heading").textContent.startsWith(name), CLASS);
  await page.locator("#find-class").fill("");
  await page.locator("#grid .card.focused").focus();
  await page.waitForTimeout(3000);
  const frames = [];
  const take = async (ms) => frames.push({ ms, file: await page.screenshot() });
  const decide = async () => {
    const id = await page.evaluate(() => document.activeElement.data.id[document.activeElement.row]);
    await page.keyboard.press(isRelevant(CLASS, id) ? "a" : "r");
    await page.waitForTimeout(900);
  };
  await take(1600);
  for (let k = 0; k < 5; k += 1) { await decide(); await take(1100); }
  writeFileSync(join(images, "review.png"), frames.at(-1).file);
  await page.keyboard.press("o");
  await page.waitForTimeout(700);
  await take(1600);
  await page.keyboard.press("Enter");
  await page.locator("#detail h3", { hasText: "History" }).waitFor();
  await page.waitForTimeout(700);
  await take(2400);
  await page.keyboard.press("Escape");
  await page.keyboard.press("c");
  await page.locator(".strip .card img[src]").first().waitFor();
  await page.waitForTimeout(1500);
  await take(2000);
  writeFileSync(join(images, "review-walk.png"), animated(frames));
} finally {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
}
