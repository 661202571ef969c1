"""Pictures of icons, drawn by the demo's own renderer (`cargo build --release -p labelsieve-icons --example rasterize`)."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy

from iconify import svg


def rasterize(program, icons, size):
    """Pictures of the icons on white: an array of n × size × size × 3 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        source, pixels = Path(folder) / "icons.jsonl", Path(folder) / "pixels"
        source.write_text("".join(json.dumps({"svg": svg(i)}) + "\n" for i in icons), encoding="utf-8")
        subprocess.run([program, str(size), source, pixels], check=True)
        return numpy.frombuffer(pixels.read_bytes(), numpy.uint8).reshape(len(icons), size, size, 3)
