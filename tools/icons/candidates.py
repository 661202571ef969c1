#!/usr/bin/env python3
"""First step: draw the candidates of each class, for people to look at.

    candidates.py PACKAGE --labelsieve BINARY --rasterizer BINARY -o candidates.csv

Matches the names of all icons of all allowed sets, joins drawings that look alike into families (a small picture of
each is compared), takes at most two of a family, and of what is left up to CAP a class, by the hash of the
family's name: a fair draw that anybody can repeat. The draw is closed: if an icon drawn for one class matches another
class too, it is a candidate of both.
"""

import argparse
import csv
from collections import defaultdict

import numpy

from drawing import rasterize
from iconify import digest, family, package_folder, read_icons, read_sets
from matching import CLASSES, match_titles

CAP = 130
PER_FAMILY = 2
ALIKE = 0.95
"""Correlation of two 32 × 32 pictures from which they count as variants of one drawing."""


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("package", type=package_folder)
    arguments.add_argument("--labelsieve", default="labelsieve")
    arguments.add_argument("--rasterizer", required=True)
    arguments.add_argument("-o", "--output", required=True)
    options = arguments.parse_args()

    icons = {icon.id: icon for icon in read_icons(options.package, read_sets(options.package))}
    by_class = defaultdict(list)
    for icon_id, name in match_titles(options.labelsieve, CLASSES, icons.values()):
        by_class[name].append(icon_id)
    matched = sorted({i for ids in by_class.values() for i in ids})
    print(f"{len(icons)} icons, {len(matched)} match")

    pictures = thumbnails(options.rasterizer, [icons[i] for i in matched])
    families = join_alike(matched, pictures, by_class)
    blank = {i for i, picture in zip(matched, pictures) if not picture.any()}
    drawn = set()
    for name, ids in by_class.items():
        chosen = draw(name, ids, families)
        drawn.update(chosen)
        print(f"{name}: {len(ids)} match, {len({families[i] for i in ids})} families, {len(chosen)} drawn")
    drawn -= blank  # white on white: nothing to see, nothing to judge
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["class", "id", "family"])
        for name, ids in by_class.items():
            for i in sorted(set(ids) & drawn, key=lambda i: (families[i], i)):
                out.writerow([name, i, families[i]])


def thumbnails(program, icons):
    """Grey 32 × 32 pictures, one row each, centred and of unit length."""
    rows = rasterize(program, icons, 32).mean(3).reshape(len(icons), -1).astype(numpy.float32)
    rows -= rows.mean(1, keepdims=True)
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def join_alike(ids, pictures, by_class):
    """The family of each icon: the same design by name, or drawings of one class that look alike."""
    row = {i: r for r, i in enumerate(ids)}
    parent = {}

    def root(x):
        while parent.setdefault(x, x) != x:
            x = parent[x]
        return x

    def join(a, b):
        a, b = sorted((root(a), root(b)))
        parent[b] = a

    for members in by_class.values():
        p = pictures[[row[i] for i in members]]
        for a, b in zip(*numpy.nonzero(numpy.triu(p @ p.T > ALIKE, 1))):
            join(family(members[a]), family(members[b]))
    return {i: root(family(i)) for i in ids}


def draw(name, ids, families):
    """At most CAP of a class's icons, at most PER_FAMILY of a family, whole families in the order of their hashes."""
    members = defaultdict(list)
    for i in ids:
        members[families[i]].append(i)
    chosen = []
    for f in sorted(members, key=lambda f: digest(name, f)):
        chosen += sorted(members[f], key=lambda i: digest(name, i))[:PER_FAMILY]
    return chosen[:CAP]


if __name__ == "__main__":
    main()
