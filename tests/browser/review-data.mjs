// Pictures and files that a review has to cope with: hostile names, missing and broken pictures, 100,000 candidates.

import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

/** A part of a PNG file. */
export const chunk = (name, data) => {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(checksum(body), body.length + 4);
  return out;
};
/** CRC-32, which older versions of Node.js do not have. */
const checksum = (bytes) => {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
};

/** A PNG with a square of one colour on another. */
export const png = (width, height, [r, g, b], share = 0.5) => {
  const line = 1 + 3 * width;
  const pixels = Buffer.alloc(line * height, 235);
  for (let y = 0; y < height; y += 1) {
    pixels[y * line] = 0;
    for (let x = 0; x < width; x += 1) {
      const inside = Math.abs(x / width - 0.5) < share / 2 && Math.abs(y / height - 0.5) < share / 2;
      if (inside) pixels.set([r, g, b], y * line + 1 + 3 * x);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(pixels)), chunk("IEND", Buffer.alloc(0))]);
};

export const HOSTILE = [
  "<script>alert('owned')</script>",
  "\"><img src=x onerror=alert(1)>",
  "{{constructor.constructor('alert(1)')()}}",
  "javascript:alert(1)",
  "'; DROP TABLE decisions; --",
  "\u202Egnp.exe \u0000 \u2028 end",
  "=HYPERLINK(\"http://example.org\")",
  "a very long caption that goes on and on, ".repeat(7).trim(),
];
const NAMES = ["<img src=x onerror=alert(1)>.png", "..%2f..%2fetc%2fpasswd.png", "\"quoted\" & <b>bold<.png", "a'b`c$(id).png", "\u202Egnp.png", "q?x=1#frag.png", "spaces  and\ttab.png", "ümläut 日本.png"];
const quoted = (text) => `"${text.replaceAll("\"", "\"\"")}"`;

/** Relevance, pictures and captions with hostile texts in every place; one picture is missing, one is broken. */
export const hostileReview = (folder) => {
  const pictures = join(folder, "hostile");
  mkdirSync(pictures, { recursive: true });
  const n = 24;
  const name = (i) => NAMES[i] ?? `plain-${i}.png`;
  const caption = (i) => (HOSTILE[i] ?? `a plain caption, number ${i}`).replaceAll("\u0000", "");
  for (let i = 0; i < n; i += 1) writeFileSync(join(pictures, name(i)), png(60 + i, 80 - i, [10 * i, 120, 250 - 10 * i]));
  rmSync(join(pictures, "plain-10.png"));
  writeFileSync(join(pictures, "plain-11.png"), "not a picture");
  writeFileSync(join(pictures, "metadata.csv"), `file_name,text\n${Array.from({ length: n }, (_, i) => `${quoted(name(i))},${quoted(caption(i))}\n`).join("")}`);
  const relevance = join(folder, "hostile.csv");
  const classes = ["<script>alert('owned')</script>", "plain"];
  const matched = (i) => ["<b>one</b> name", "another & name"][i % 2];
  const lines = Array.from({ length: n }, (_, i) => `${quoted(name(i))},${quoted(classes[i < 12 ? 0 : 1])},${(1 - i / n).toFixed(3)},false,${quoted(matched(i))}\n`);
  writeFileSync(relevance, `id,class,relevance,is_clean,matched_name\n${lines.join("")}`);
  return { relevance, pictures, name, caption, matched };
};

/** Files that say as little as they may: no features, no captions, a decision of nobody and no time, a class without candidates. */
export const bareReview = (folder, decisions) => {
  const pictures = join(folder, "bare");
  mkdirSync(pictures, { recursive: true });
  for (let i = 0; i < 6; i += 1) writeFileSync(join(pictures, `thing-${i}.png`), png(60, 60, [40 * i, 120, 90]));
  const relevance = join(folder, "bare.csv");
  const things = Array.from({ length: 8 }, (_, i) => `thing-${i}.png,things,0.${9 - i},false\n`); // two of them without a picture
  writeFileSync(relevance, `id,class,relevance,is_clean\n${things.join("")}lost.png,things,1,true\nthing-0.png,empty,1,true\ntext:empty,empty,1,true\n`);
  writeFileSync(decisions, "id,class,decision\nthing-0.png,things,accept\n");
  return { relevance, pictures };
};

/** One class of `n` candidates with a picture each: a few files under many names. */
export const manyCandidates = (folder, n) => {
  const pictures = join(folder, `many-${n}`);
  mkdirSync(pictures, { recursive: true });
  const KINDS = 64;
  const id = (i) => `${String(i).padStart(6, "0")}.png`;
  for (let i = 0; i < n; i += 1) {
    if (i < KINDS) writeFileSync(join(pictures, id(i)), png(96, 96, [(i * 37) % 256, (i * 91) % 256, (i * 151) % 256], 0.3 + (i % 6) / 10));
    else linkSync(join(pictures, id(i % KINDS)), join(pictures, id(i)));
  }
  const relevance = join(folder, `many-${n}.csv`);
  const rows = Array.from({ length: n }, (_, i) => `${id(i)},many,${((i * 7919) % n / n).toFixed(4)},false\n`);
  writeFileSync(relevance, `id,class,relevance,is_clean\n${rows.join("")}`);
  return { relevance, pictures };
};

/** What somebody who looked at every icon of the demo says: class and id to relevant or not. */
const truth = new Map(readFileSync(new URL("../../tools/icons/truth.csv", import.meta.url), "utf8").trim().split("\n").slice(1).map((line) => {
  const [name, id, , relevant] = line.split(",");
  return [`${name} ${id.replace(":", "_")}`, relevant === "1"];
}));
export const isRelevant = (name, id) => truth.get(`${name} ${id.replace(/\.png$/, "")}`);
