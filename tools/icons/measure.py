#!/usr/bin/env python3
"""What cleaning is worth on the icons: accuracy on the test part and ROC AUC of the relevance, by k and λ.

    measure.py --labelsieve BINARY (--pixels RASTERIZER | --features FILE) [--k 1 2 5] [--lambda 0.01 …] [--methods …]

Features come from a Parquet file with `id` and `embedding`, as `labelsieve embed` writes it, for all icons; or from plain pixels: 16 × 16 grey
ones, the 64 main directions of the base icons. Every number is the mean over episodes, each with other clean examples. `--classes` adds a
table by class, for the first k and the first method, `--histogram` the candidates by tenths of relevance. `--keep` leaves the files of the last run in a folder.
"""

import argparse
import bz2
import itertools
import json
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet as parquet

from matching import CLASSES, DATA, RULE

REFERENCES = ["clean only", "beta", "oracle"]


def main():
    options = parse_arguments()
    icons = read_lines(DATA / "icons.jsonl.bz2")
    rows = pixel_features(options.pixels, icons) if options.pixels else stored_features(options.features, icons)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.labelsieve, options.keep or Path(folder), icons, rows)
        variants = [(m, value) for m in options.methods for value in (options.lambdas if m in ("gcn", "mlp") else [None])]
        results = defaultdict(list)
        tenths = defaultdict(lambda: numpy.zeros((2, 10), int))
        for k, episode in itertools.product(options.k, range(options.episodes)):
            bench.draw_clean(k, episode)
            for name in REFERENCES:
                results[name, None, k].append(bench.reference(name))
            for method, value in variants:
                results[method, value, k].append(bench.method(method, value))
                tenths[method, value, k] += bench.tenths()
    print_methods(results, options.k)
    if options.histogram:
        print_tenths(tenths)
    if options.classes:
        print_classes(results, variants[0], options.k[0], bench.precision())


def parse_arguments():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--labelsieve", default="labelsieve")
    source = arguments.add_mutually_exclusive_group(required=True)
    source.add_argument("--pixels", metavar="RASTERIZER")
    source.add_argument("--features", metavar="FILE")
    arguments.add_argument("--k", type=int, nargs="+", default=[1, 2, 5])
    arguments.add_argument("--lambda", dest="lambdas", nargs="+", default=[None])
    arguments.add_argument("--methods", nargs="+", default=["gcn"])
    arguments.add_argument("--episodes", type=int, default=5)
    arguments.add_argument("--classes", action="store_true")
    arguments.add_argument("--histogram", action="store_true")
    arguments.add_argument("--keep", type=Path, metavar="FOLDER")
    return arguments.parse_args()


def read_lines(path):
    return [json.loads(line) for line in bz2.decompress(path.read_bytes()).decode().splitlines()]


def stored_features(path, icons):
    table = parquet.read_table(path, columns=["id", "embedding"]).to_pydict()
    by_id = dict(zip(table["id"], table["embedding"]))
    missing = [icon["id"] for icon in icons if icon["id"] not in by_id]
    if missing:
        raise SystemExit(f"error: `{path}` has no features of `{missing[0]}` ({len(missing)} such)")
    return numpy.array([by_id[icon["id"]] for icon in icons], numpy.float32)


def pixel_features(rasterizer, icons):
    """Grey pixels, projected on the main directions of the base icons' pixels."""
    base, novel = (grey_pixels(rasterizer, lines) for lines in (read_lines(DATA / "base.jsonl.bz2"), icons))
    mean = base.mean(0)
    _, directions = numpy.linalg.eigh(numpy.cov((base - mean).T))
    return ((novel - mean) @ directions[:, -64:]).astype(numpy.float32)


def grey_pixels(rasterizer, icons):
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "icons.jsonl", Path(folder) / "pixels"
        source.write_text("".join(json.dumps({"svg": i["svg"]}) + "\n" for i in icons), encoding="utf-8")
        subprocess.run([rasterizer, "32", source, target], check=True)
        pixels = numpy.frombuffer(target.read_bytes(), numpy.uint8).reshape(len(icons), 16, 2, 16, 2, 3)
    return 1 - pixels.mean((2, 4, 5)).reshape(len(icons), 256) / 255


class Bench:
    """The commands a user would type, on files in a folder."""

    def __init__(self, labelsieve, folder, icons, rows):
        self.labelsieve, self.folder, self.icons, self.rows = labelsieve, folder, icons, rows
        folder.mkdir(parents=True, exist_ok=True)
        parts = defaultdict(list)
        for index, icon in enumerate(icons):
            parts[icon["part"]].append(index)
        self.clean = parts["clean"]
        self.truth = {(icons[i]["id"], name): shown for i in parts["pool"] for name, shown in icons[i]["truth"].items()}
        self.write("noisy", self.examples(parts["pool"], labelled=False))
        self.write("test", self.examples(parts["test"], labelled=True))
        ids, names = zip(*self.truth)
        self.write("truth", {"id": ids, "class": names, "relevant": list(self.truth.values())})
        titles = folder / "pool.jsonl"
        titles.write_text("".join(json.dumps({k: icons[i][k] for k in ("id", "title")}) + "\n" for i in parts["pool"]))
        self.run("match", "--classes", CLASSES, "--text", titles, "--rule", RULE, "-o", self.file("candidates"))

    def file(self, name):
        return self.folder / f"{name}.parquet"

    def write(self, name, columns):
        parquet.write_table(pyarrow.table({key: pyarrow.array(value) for key, value in columns.items()}), self.file(name))

    def run(self, *arguments):
        return subprocess.run([self.labelsieve, *arguments], check=True, capture_output=True, text=True).stdout

    def examples(self, indices, labelled):
        columns = {"id": [self.icons[i]["id"] for i in indices], "embedding": list(self.rows[indices])}
        if labelled:
            columns["class"] = [self.icons[i]["class"] for i in indices]
        return columns

    def draw_clean(self, k, episode):
        """k clean examples a class, other ones in every episode."""
        by_class = defaultdict(list)
        for index in numpy.random.RandomState(episode).permutation(self.clean):
            by_class[self.icons[index]["class"]].append(index)
        self.write("clean", self.examples([i for name in sorted(by_class) for i in by_class[name][:k]], labelled=True))

    def score(self, method, value=None):
        pools = ["--clean", self.file("clean"), "--pool", self.file("noisy"), "--candidates", self.file("candidates")]
        setting = ["--lambda", value] if value is not None and method in ("gcn", "mlp") else []
        self.run("score", *pools, "--method", method, *setting, "-o", self.file("relevance"))

    def accuracy(self):
        model = self.folder / "model.safetensors"
        files = ["--clean", self.file("clean"), "--pool", self.file("noisy"), "--relevance", self.file("relevance")]
        self.run("train", *files, "-o", model)
        return json.loads(self.run("evaluate", "--model", model, "--test", self.file("test"), "--json"))

    def method(self, method, value):
        self.score(method, value)
        relevance = ["--relevance", self.file("relevance"), "--truth", self.file("truth")]
        return self.accuracy() | json.loads(self.run("evaluate", *relevance, "--json"))

    def reference(self, name):
        """Rows that need no model: no candidates, all of them, or those that truly belong."""
        self.score("beta")
        if name != "beta":
            table = parquet.read_table(self.file("relevance")).to_pydict()
            pairs = zip(table["id"], table["class"], table["is_clean"])
            keep = [c or (name == "oracle" and self.truth[i, n]) for i, n, c in pairs]
            table["relevance"] = numpy.array(keep, numpy.float32)
            self.write("relevance", table)
        return self.accuracy()

    def tenths(self):
        """Candidates of the last relevance by tenths: all of them, and those that truly belong."""
        table = parquet.read_table(self.file("relevance")).to_pydict()
        noisy = [(r, self.truth[i, n]) for i, n, r, c in zip(*(table[k] for k in ("id", "class", "relevance", "is_clean"))) if not c]
        relevance, shown = (numpy.array(column) for column in zip(*noisy))
        return numpy.array([numpy.histogram(part, 10, (0, 1))[0] for part in (relevance, relevance[shown])])

    def precision(self):
        shown = defaultdict(list)
        for (_, name), relevant in self.truth.items():
            shown[name].append(relevant)
        return {name: numpy.mean(values) for name, values in shown.items()}


def print_methods(results, ks):
    print("| prototypes from | " + " | ".join(f"k = {k}" for k in ks) + " | " + " | ".join(f"AUC, k = {k}" for k in ks) + " |")
    print("|---|" + "---|" * (2 * len(ks)))
    for method, value in dict.fromkeys((m, v) for m, v, _ in results):
        cells = [interval([r["top_1"] for r in results[method, value, k]]) for k in ks]
        scored = [[r["relevance"]["all"]["auc"] for r in results[method, value, k] if "relevance" in r] for k in ks]
        cells += [f"{numpy.mean(aucs):.2f}" if aucs else "" for aucs in scored]
        print(f"| {method}{'' if value is None else f', λ = {value}'} | " + " | ".join(cells) + " |")


def interval(values):
    """Mean and 95 % interval over episodes, in percent."""
    mean, width = 100 * numpy.mean(values), 0.0
    if len(values) > 1:
        width = 196 * numpy.std(values, ddof=1) / len(values) ** 0.5
    return f"{mean:.1f} ± {width:.1f}"


def print_tenths(tenths):
    print("\n| relevance from | " + " | ".join(f"{t / 10:.1f}" for t in range(10)) + " |\n|---|" + "---|" * 10)
    for (method, value, k), (all_candidates, shown) in tenths.items():
        name = f"{method}{'' if value is None else f', λ = {value}'}, k = {k}"
        print(f"| {name}: share of candidates | " + " | ".join(f"{c / all_candidates.sum():.2f}" for c in all_candidates) + " |")
        print(f"| {name}: of these relevant | " + " | ".join(f"{s / max(c, 1):.2f}" for s, c in zip(shown, all_candidates)) + " |")


def print_classes(results, variant, k, precision):
    print(f"\n| class, k = {k} | precision of the pool | clean only | beta | {variant[0]} | oracle | AUC |\n|---|---|---|---|---|---|---|")
    rows = [("clean only", None), ("beta", None), variant, ("oracle", None)]

    def by_class(row):
        runs = [{c["class"]: c["top_1"] for c in r["classes"]} for r in results[(*row, k)]]
        return {name: 100 * numpy.mean([run[name] for run in runs]) for name in runs[0]}

    columns = [by_class(row) for row in rows]
    scored = [r["relevance"]["classes"] for r in results[(*variant, k)]]
    for name in sorted(precision, key=lambda n: columns[2][n] - columns[0][n]):
        aucs = [run[name]["auc"] for run in scored]
        cells = [f"{column[name]:.0f}" for column in columns]
        print(f"| {name} | {precision[name]:.2f} | " + " | ".join(cells) + f" | {numpy.mean(aucs):.2f} |")


if __name__ == "__main__":
    main()
