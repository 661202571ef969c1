"""Run `labelsieve match` on icon names."""

import json
import subprocess
import tempfile
from pathlib import Path

import pyarrow.parquet as parquet

RULE = "plural"
DATA = Path(__file__).resolve().parents[2] / "crates/labelsieve-icons/data"
CLASSES = DATA / "classes.toml"


def match_titles(labelsieve, classes, icons):
    """The pairs (icon id, class) that `labelsieve match --rule plural` finds, in the order of the icons."""
    with tempfile.TemporaryDirectory() as folder:
        titles, found = Path(folder) / "titles.jsonl", Path(folder) / "candidates.parquet"
        with open(titles, "w", encoding="utf-8") as file:
            for icon in icons:
                file.write(json.dumps({"id": icon.id, "title": icon.title}) + "\n")
        subprocess.run(
            [labelsieve, "match", "--quiet", "--classes", classes, "--text", titles, "--rule", RULE, "-o", found],
            check=True,
            stdout=subprocess.DEVNULL,  # statistics
        )
        table = parquet.read_table(found, columns=["id", "class"]).to_pydict()
        return list(zip(table["id"], table["class"]))
