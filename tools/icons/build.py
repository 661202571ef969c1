#!/usr/bin/env python3
"""Last step: write the sample that ships, from the npm package and the labels in truth.csv.

    build.py PACKAGE --labelsieve BINARY [-o FOLDER]

Writes icons.jsonl.bz2 (the 32 words: clean, pool and test part), base.jsonl.bz2 (the classes a network is trained on) and
ATTRIBUTION.md. The same package and labels give the same bytes. It stops when the labels do not fit the package: an icon
that is not there, a candidate that `labelsieve match` finds but that has not been reviewed, or the other way round.
"""

import argparse
import bz2
import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

from attribution import attribution
from iconify import VERSION, digest, family, package_folder, read_icons, read_sets, svg
from matching import CLASSES, DATA, match_titles
from parts import assign_parts

HERE = Path(__file__).parent
BASE_PER_CLASS = 60
BASE_PER_FAMILY = 3
BASE_MAX_BODY = 2500


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("package", type=package_folder)
    arguments.add_argument("--labelsieve", default="labelsieve")
    arguments.add_argument("-o", "--output", type=Path, default=DATA)
    options = arguments.parse_args()

    sets = read_sets(options.package)
    icons = {icon.id: icon for icon in read_icons(options.package, sets)}
    truth = read_truth(icons)
    check_against_match(options.labelsieve, icons, truth)

    parts = assign_parts(truth)
    novel = [novel_record(icons[i], parts[i], truth) for i in sorted(parts)]
    base = base_records(options.labelsieve, icons, truth)
    options.output.mkdir(parents=True, exist_ok=True)
    write_lines(options.output / "icons.jsonl.bz2", novel)
    write_lines(options.output / "base.jsonl.bz2", base)
    used = Counter(r["id"].split(":")[0] for r in novel + base)
    (options.output / "ATTRIBUTION.md").write_text(attribution(VERSION, sets, used), encoding="utf-8")
    print_table(truth, parts)


def read_truth(icons):
    """The labels: id → class → row of truth.csv."""
    truth = defaultdict(dict)
    with open(HERE / "truth.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["id"] not in icons:
                raise SystemExit(f"error: truth.csv: `{row['id']}` is not in the package")
            truth[row["id"]][row["class"]] = row
    return truth


def check_against_match(labelsieve, icons, truth):
    """Every candidate that matching finds has a label, and every label is of a candidate."""
    found = set(match_titles(labelsieve, CLASSES, [icons[i] for i in sorted(truth)]))
    labelled = {(i, name) for i, rows in truth.items() for name in rows}
    for pairs, problem in ((found - labelled, "has no label in truth.csv"), (labelled - found, "is not found by match")):
        for icon_id, name in sorted(pairs)[:1]:
            raise SystemExit(f"error: `{icon_id}` of class `{name}` {problem} ({len(pairs)} such)")


def novel_record(icon, part, truth):
    """One line of icons.jsonl: `truth` says for each class whose name is in the title whether the icon belongs to it."""
    labels = {name: row["relevant"] == "1" for name, row in sorted(truth[icon.id].items())}
    shown = [name for name, relevant in labels.items() if relevant]
    return {
        "id": icon.id,
        "title": icon.title,
        "part": part,
        "class": None if part == "pool" else shown[0],
        "truth": labels,
        "svg": svg(icon),
    }


def base_records(labelsieve, icons, truth):
    """The base classes: icons whose name, without words of style, is exactly the class's.

    Nothing that the 32 words match is among them. A fifth of the families is kept for testing.
    """
    names = (HERE / "base_classes.txt").read_text(encoding="utf-8").split()
    members = defaultdict(lambda: defaultdict(list))
    for icon in icons.values():
        name = family(icon.id).split(":", 1)[1]
        if name in names and icon.id not in truth and len(icon.body) <= BASE_MAX_BODY and not all_white(icon.body):
            members[name][family(icon.id)].append(icon)
    records = []
    for name in names:
        families = sorted(members[name], key=lambda f: digest(name, f))
        taken = [i for f in families for i in sorted(members[name][f], key=lambda i: digest(name, i.id))[:BASE_PER_FAMILY]]
        test = set(families[: len(families) // 5])
        for icon in taken[:BASE_PER_CLASS]:
            part = "base-test" if family(icon.id) in test else "base"
            records.append({"id": icon.id, "title": icon.title, "part": part, "class": name, "svg": svg(icon)})
    clash = match_titles(labelsieve, CLASSES, [icons[r["id"]] for r in records])
    if clash:
        raise SystemExit(f"error: base icon `{clash[0][0]}` is a candidate of `{clash[0][1]}`")
    return sorted(records, key=lambda r: (r["class"], r["id"]))


def all_white(body):
    """Logos meant for a dark page."""
    colours = set(re.findall(r'(?:fill|stroke|stop-color)="([^"]*)"', body)) - {"none"}
    return bool(colours) and colours <= {"#fff", "#FFF", "#ffffff", "#FFFFFF", "white"}


def write_lines(path, records):
    text = "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in records)
    path.write_bytes(bz2.compress(text.encode(), 9))
    print(f"{path.name}: {len(records)} icons, {len(text.encode())} bytes, {path.stat().st_size} compressed")


def print_table(truth, parts):
    """Candidates and precision per class, as in the README."""
    print("| class | clean | test | pool | relevant in the pool | precision |\n|---|---|---|---|---|---|")
    count = defaultdict(Counter)
    for i, part in parts.items():
        for name, row in truth[i].items():
            relevant = row["relevant"] == "1"
            count[name][part] += part == "pool" or relevant
            count[name]["relevant"] += part == "pool" and relevant
    for name, c in sorted(count.items()):
        print_row(name, c)
    print_row("all", sum(count.values(), Counter()))


def print_row(name, c):
    precision = c["relevant"] / c["pool"]
    print(f"| {name} | {c['clean']} | {c['test']} | {c['pool']} | {c['relevant']} | {precision:.2f} |")


if __name__ == "__main__":
    main()
