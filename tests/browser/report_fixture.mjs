// Files for reports: pictures with awkward names, captions, decisions, and as many candidates as wanted.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const labelsieve = process.env.LABELSIEVE ?? "labelsieve";

/** A PNG of one red pixel. */
export const PIXEL = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==", "base64");

/** File names that an address or a page might stumble over. */
export const HOSTILE = ["javascript:alert(1).png", "a\"b'c.png", "50%.png", "what?.png", "part#2.png", "two\nlines.png", "\u202egnp.exe.png", "<img src=x onerror=alert(1)>.png", "sub folder/é.png"];

const cell = (text) => `"${String(text).replaceAll("\"", "\"\"")}"`;
const table = (rows) => rows.map((row) => row.map(cell).join(",") + "\n").join("");

/** A folder with `write(name, contents)` and `report(...arguments)`, which returns the path of `report.html`. */
export const newFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "labelsieve-report-"));
  const write = (name, contents) => {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, contents);
  };
  const report = (...options) => {
    execFileSync(labelsieve, ["report", ...options, "-o", "out/report.html"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
    return join(folder, "out/report.html");
  };
  mkdirSync(join(folder, "out"));
  return { folder, write, report, table: (name, rows) => write(name, table(rows)) };
};

/** Two classes: one of files with hostile names, one of which most candidates have no picture on the page. */
export const hostileReport = () => {
  const { folder, write, report, table } = newFolder();
  const relevance = [["id", "class", "relevance", "is_clean"], ["clean.png", "owl", 1, true]];
  const captions = [["file_name", "caption"], ["clean.png", "a verified owl"]];
  write("photos/clean.png", PIXEL);
  HOSTILE.forEach((name, i) => {
    write(join("photos", name), PIXEL);
    relevance.push([name, "owl", 0.9 - 0.05 * i, false]);
  });
  for (let i = 0; i < 450; i += 1) {
    const id = `cat/${String(i).padStart(4, "0")}.png`;
    write(join("photos", id), PIXEL);
    relevance.push([id, "cat", (1 - i / 450).toFixed(4), false]);
    captions.push([id, i === 300 ? "Größe \u202e <b>bold</b> javascript:alert(2)" : `a cat, number ${i}, ${i % 7 === 0 ? "asleep" : "awake"}`]);
  }
  const decisions = [["id", "class", "decision"], ["cat/0000.png", "cat", "accept"], ["cat/0001.png", "cat", "reject"], ["cat/0002.png", "cat", "unsure"],
    ["cat/0300.png", "cat", "reject"], ["cat/0003.png", "cat", "accept"], ["cat/0003.png", "cat", "undecided"]];
  table("relevance.csv", relevance);
  table("photos/metadata.csv", captions);
  table("decisions.csv", decisions);
  const path = report("relevance.csv", "--images", "photos", "--decisions", "decisions.csv", "--per-class", "40");
  return { folder, path };
};

/** Five classes of 20,000 candidates with captions. */
export const largeReport = () => {
  const { write, report, table } = newFolder();
  const relevance = [["id", "class", "relevance", "is_clean", "matched_name", "best_clean", "best_clean_similarity", "reciprocal_neighbours"]];
  const captions = [["id", "text"]];
  write("photos/clean.png", PIXEL);
  for (let i = 0; i < 100_000; i += 1) {
    const id = `photos/2026/${String(i).padStart(9, "0")}.jpg`;
    relevance.push([id, `class ${i % 5}`, ((i * 7919) % 100_000 / 100_000).toFixed(4), false, `class ${i % 5}`, "clean.png", 0.5, i % 50]);
    captions.push([id, `a photo of something in the street, taken on a rainy day by nobody in particular, number ${i}`]);
  }
  table("relevance.csv", relevance);
  table("texts.csv", captions);
  return report("relevance.csv", "--images", "photos", "--text", "texts.csv");
};
