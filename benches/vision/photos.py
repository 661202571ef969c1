"""Draws 64 photo-like JPEG files of 640×480 into a folder: smooth shapes, edges and noise, 90 % quality.

    python photos.py FOLDER
"""
import pathlib
import sys

import numpy as np
from PIL import Image

y, x = np.mgrid[:480, :640]
for i in range(64):
    rng = np.random.default_rng(i)
    channels = []
    for c in range(3):
        waves = sum(np.sin(rng.normal(0, 0.03) * x + rng.normal(0, 0.03) * y + rng.uniform(0, 6)) for _ in range(5))
        edge = 40 * (x * rng.normal() + y * rng.normal() > rng.normal(0, 200))
        channels.append(110 + 25 * waves + edge + rng.normal(0, 6, x.shape))
    pixels = np.clip(np.stack(channels, 2), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(pathlib.Path(sys.argv[1]) / f"{i:02}.jpg", quality=90)
