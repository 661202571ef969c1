#!/usr/bin/env python3
"""Second step: contact sheets to label by, one PNG a class, candidates numbered in the order of candidates.csv.

    sheets.py PACKAGE --rasterizer BINARY --candidates candidates.csv -o FOLDER
"""

import argparse
import csv
import struct
import zlib
from collections import defaultdict
from pathlib import Path

import numpy

from drawing import rasterize
from iconify import package_folder, read_icons, read_sets

SIZE, CELL_WIDTH, CELL_HEIGHT, COLUMNS = 64, 80, 84, 13

DIGITS = ["111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
          "111100111001111", "111100111101111", "111001010010010", "111101111101111", "111101111001111"]  # fmt: skip


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("package", type=package_folder)
    arguments.add_argument("--rasterizer", required=True)
    arguments.add_argument("--candidates", required=True)
    arguments.add_argument("-o", "--output", type=Path, required=True)
    options = arguments.parse_args()

    icons = {icon.id: icon for icon in read_icons(options.package, read_sets(options.package))}
    by_class = defaultdict(list)
    with open(options.candidates, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            by_class[row["class"]].append(icons[row["id"]])
    options.output.mkdir(parents=True, exist_ok=True)
    for name, members in by_class.items():
        write_png(options.output / f"{name}.png", sheet(rasterize(options.rasterizer, members, SIZE)))


def sheet(pictures):
    """All pictures on one, each with its number below."""
    rows = -(-len(pictures) // COLUMNS)
    page = numpy.full((rows * CELL_HEIGHT, COLUMNS * CELL_WIDTH, 3), 255, numpy.uint8)
    for number, picture in enumerate(pictures):
        y, x = number // COLUMNS * CELL_HEIGHT, number % COLUMNS * CELL_WIDTH
        page[y + 2 : y + 2 + SIZE, x + 8 : x + 8 + SIZE] = picture
        page[y : y + CELL_HEIGHT, x] = 200
        page[y + CELL_HEIGHT - 1, x : x + CELL_WIDTH] = 200
        write_number(page, number, y + 69, x + 24)
    return page


def write_number(page, number, y, x):
    for digit in str(number):
        bits = numpy.array([int(b) for b in DIGITS[int(digit)]]).reshape(5, 3)
        ink = numpy.kron(bits, numpy.ones((2, 2), int)).astype(bool)
        page[y : y + 10, x : x + 6][ink] = (200, 0, 0)
        x += 8


def write_png(path, page):
    height, width, _ = page.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + line.tobytes() for line in page)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(lines, 6))
        + chunk(b"IEND", b"")
    )


if __name__ == "__main__":
    main()
