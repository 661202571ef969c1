// Starts `labelsieve review` as a person would, reads the address it prints, and ends it, gently or not.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";

const given = process.env.LABELSIEVE ?? "labelsieve";
const binary = given.includes("/") ? resolve(given) : given;

/** Runs a command to its end and gives what it printed. */
export const labelsieve = (...args) => {
  const { status, stdout, stderr } = spawnSync(binary, args, { encoding: "utf8", maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`labelsieve ${args.join(" ")} ended with ${status}:\n${stderr}`);
  return stdout;
};

const ADDRESS = /http:\/\/127\.0\.0\.1:\d+\/[^\s/]+\//;
const PATIENCE_MS = 120_000;

/** Starts a review; `args` are those after `labelsieve review`. */
export const serve = (...args) => serveIn(undefined, ...args);

/** The same in a folder. */
export const serveIn = async (cwd, ...args) => {
  const child = spawn(binary, ["review", ...args, "--no-open"], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  const url = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no address within ${PATIENCE_MS} ms:\n${printed}`)), PATIENCE_MS);
    const read = (bytes) => {
      printed += bytes;
      const found = printed.match(ADDRESS);
      if (found) { clearTimeout(timer); resolve(found[0]); }
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => { clearTimeout(timer); reject(new Error(`ended with ${code} before it printed an address:\n${printed}`)); });
  });
  const end = async (signal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  };
  return { url, stop: () => end("SIGTERM"), kill: () => end("SIGKILL"), printed: () => printed };
};

/** What reviews the icons of a demo, with `decisions` as its output. */
export const demoArguments = (demo, decisions) => {
  const file = (name) => join(demo, name);
  return [file("relevance.parquet"), "--images", file("images/pool"), file("images/clean"), "--clean", file("clean.parquet"),
    "--pool", file("pool.parquet"), "--candidates", file("candidates.parquet"), "-o", decisions];
};
