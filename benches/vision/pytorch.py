"""The same networks, sizes and batches in PyTorch on the CPU, channels last: one line of JSON per network, and one from photos.

    python pytorch.py THREADS [JPEG...]
"""
import concurrent.futures
import importlib.util
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
golden = pathlib.Path(__file__).parents[2] / "crates/labelsieve-vision/tests/golden"
sys.path.insert(0, str(golden))
import networks  # noqa: E402


def per_second(images, work):
    work()
    best = 0.0
    for _ in range(3):
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < 2:
            work()
            calls += 1
        best = max(best, calls * images / (time.perf_counter() - start))
    return best


def measure(name, network, size, images):
    network = network.to(memory_format=torch.channels_last)
    x = torch.randn(images, 3, size, size).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        dim = network.eval()(x).shape[1]
    weights = torch.nn.Parameter(torch.randn(100, dim))
    scale = torch.nn.Parameter(torch.tensor(10.0))
    sgd = torch.optim.SGD([*network.parameters(), weights, scale], lr=1e-4, momentum=0.9, nesterov=True, weight_decay=5e-4)
    classes = torch.arange(images)

    def step():
        logits = scale * F.normalize(network(x)) @ F.normalize(weights).t()
        loss = F.cross_entropy(logits, classes)
        sgd.zero_grad()
        loss.backward()
        sgd.step()

    def embed():
        with torch.inference_mode():
            network(x)

    network.train()
    train = per_second(images, step)
    network.eval()
    print(json.dumps({"network": name, "size": size, "batch": images, "train": train, "embed": per_second(images, embed)}), flush=True)


measure("resnet10", networks.ResNet([1, 1, 1, 1], False, False, False), 224, 8)
measure("resnet10", networks.ResNet([1, 1, 1, 1], False, False, True), 64, 64)
measure("convnet128", networks.ConvNet(), 84, 32)
measure("efficientnet-lite0", networks.EfficientNetLite0(), 224, 32)


def photos(files, batch=32):
    """From files to features: Pillow decodes, scales and crops a batch on all threads, then the network takes it."""
    import numpy as np
    from PIL import Image

    network = networks.EfficientNetLite0().eval().to(memory_format=torch.channels_last)
    pool = concurrent.futures.ThreadPoolExecutor(torch.get_num_threads())

    def pixels(path):
        image = Image.open(path).convert("RGB")
        scale = 256 / min(image.size)
        image = image.resize([round(side * scale) for side in image.size], Image.BILINEAR)
        left, top = ((side - 224) // 2 for side in image.size)
        return np.asarray(image.crop((left, top, left + 224, top + 224)))

    def decode(start):
        return torch.from_numpy(np.stack(list(pool.map(pixels, files[start : start + batch]))))

    def embed():
        for start in range(0, len(files), batch):
            x = (decode(start).permute(0, 3, 1, 2).float() - 127) / 128
            with torch.inference_mode():
                F.normalize(network(x))

    rates = {
        "decode": per_second(len(files), lambda: [decode(start) for start in range(0, len(files), batch)]),
        "photos": per_second(len(files), embed),
    }
    print(json.dumps({"network": "efficientnet-lite0", "size": 224, "batch": batch, **rates}), flush=True)


if len(sys.argv) > 2:
    photos(sys.argv[2:])
