#!/usr/bin/env python3
"""The tables of a run as Markdown, for docs/results.md: `python3 benches/photos/tables.py RUN novel-top-1 ...`."""

import json
import sys
from pathlib import Path


def cell(value, decimals):
    if value is None or isinstance(value, str):
        return value or ""
    width = value.get("half_width")
    return f"{value['mean']:.{decimals}f}" + (f" ± {width:.{decimals}f}" if width is not None else "")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wanted = sys.argv[2:]
    for table in json.loads((Path(sys.argv[1]) / "tables.json").read_text()):
        if wanted and not any(table["id"].startswith(name) for name in wanted):
            continue
        names = [column["name"] for column in table["columns"]]
        print(f"**{table['title']}**\n")
        print("| | " + " | ".join(names) + " |")
        print("|---" * (len(names) + 1) + "|")
        for row in table["rows"]:
            cells = [cell(value, column["decimals"]) for value, column in zip(row["cells"], table["columns"])]
            print(f"| {row['label']} | " + " | ".join(cells) + " |")
        print()


if __name__ == "__main__":
    main()
