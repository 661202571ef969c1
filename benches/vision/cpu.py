"""Images per second on the CPU, ours and PyTorch's in turn, as a table.

    python cpu.py OURS THREADS ROUNDS JPEG...

OURS is the example `throughput`. Every round measures us, PyTorch and compiled PyTorch one right after the other, so that other load on
the machine affects all of them; the table has the median of the rounds, and of their ratios. Every thread is kept on a core of its own: left to
itself, Linux may keep both on one for seconds when other programs are busy.
"""
import concurrent.futures
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import timm
import torch
import torch._inductor.config
import torch.nn.functional as F
from PIL import Image

STRETCH = 1.5
ours, threads, rounds, *files = sys.argv[1:]
threads, rounds = int(threads), int(rounds)
cores = sorted(os.sched_getaffinity(0))[:threads]
torch.set_num_threads(threads)
torch._inductor.config.freezing = True  # folds normalisations into convolutions and packs weights
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "crates/labelsieve-networks/tests/golden"))
import networks  # noqa: E402

ROWS = [  # work, network, size, batch
    ("embed", "efficientnet-lite0", 224, 32),
    ("embed", "ViT-S/14", 224, 8),
    ("embed", "ViT-B/16", 224, 8),
    ("photos", "efficientnet-lite0", 224, 32),
    ("decode", "efficientnet-lite0", 224, 32),
    ("embed", "resnet10", 224, 8),
    ("train", "resnet10", 224, 8),
    ("embed", "resnet10", 64, 64),
    ("train", "resnet10", 64, 64),
    ("embed", "convnet128", 84, 32),
    ("train", "convnet128", 84, 32),
    ("train", "efficientnet-lite0", 224, 32),
]


def network(name, size):
    """The network in the layout that suits it best, and that layout."""
    if name.startswith("ViT"):  # timm's, with PyTorch's fused attention
        model = {"ViT-S/14": "vit_small_patch14_dinov2", "ViT-B/16": "vit_base_patch16_224"}[name]
        options = {"init_values": None} if "dinov2" in model else {}  # no layer scale: we fold it into the layers
        return timm.create_model(model, num_classes=0, img_size=size, **options), torch.contiguous_format
    made = {
        # Zeros around images on all sides alike: TensorFlow's would be a copy of the image before each convolution.
        "efficientnet-lite0": lambda: timm.create_model("efficientnet_lite0", num_classes=0),
        "resnet10": lambda: networks.ResNet([1, 1, 1, 1], False, False, size <= 96),
        "convnet128": networks.ConvNet,
    }[name]()
    return made.to(memory_format=torch.channels_last), torch.channels_last


def works(work, name, size, batch):
    """Images of a call, and what to call: as PyTorch runs it by itself, and compiled."""
    model, layout = network(name, size)
    if work == "train":
        return batch, train(model, size, batch), None
    model.eval()
    compiled = torch.compile(model)
    if work == "photos":
        return len(files), lambda: photos(model, batch, layout), lambda: photos(compiled, batch, layout)
    if work == "decode":
        return len(files), lambda: photos(None, batch, layout), None
    x = torch.randn(batch, 3, size, size).contiguous(memory_format=layout)
    return batch, inference(lambda: model(x)), inference(lambda: compiled(x))


def inference(work):
    def call():
        with torch.inference_mode():
            work()

    return call


def train(model, size, images):
    x = torch.randn(images, 3, size, size).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        dim = model.eval()(x).shape[1]
    model.train()
    weights = torch.nn.Parameter(torch.randn(100, dim))
    scale = torch.nn.Parameter(torch.tensor(10.0))
    sgd = torch.optim.SGD([*model.parameters(), weights, scale], lr=1e-4, momentum=0.9, nesterov=True, weight_decay=5e-4)
    classes = torch.arange(images)

    def step():
        logits = scale * F.normalize(model(x)) @ F.normalize(weights).t()
        sgd.zero_grad()
        F.cross_entropy(logits, classes).backward()
        sgd.step()

    return step


pool = concurrent.futures.ThreadPoolExecutor(threads)


def pixels(path):
    image = Image.open(path).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize([round(side * scale) for side in image.size], Image.BILINEAR)
    left, top = ((side - 224) // 2 for side in image.size)
    return np.asarray(image.crop((left, top, left + 224, top + 224)))


def photos(model, batch, layout):
    """From files to features: Pillow decodes, scales and crops a batch on all threads, then the network takes it."""
    for start in range(0, len(files), batch):
        images = torch.from_numpy(np.stack(list(pool.map(pixels, files[start : start + batch]))))
        if model is not None:
            with torch.inference_mode():
                x = ((images.permute(0, 3, 1, 2).float() - 127) / 128).contiguous(memory_format=layout)
                F.normalize(model(x))


def threads_of(process):
    return sorted(int(thread) for thread in os.listdir(f"/proc/{process}/task"))


def pin(threads):
    for i, thread in enumerate(threads):
        os.sched_setaffinity(thread, {cores[i % len(cores)]})


def pin_pytorch():
    """The first thread works with the others, of which each runtime has its own; those that decode work by themselves."""
    decoding = [thread.native_id for thread in pool._threads]
    first, *others = [thread for thread in threads_of(os.getpid()) if thread not in decoding]
    pin(decoding)
    pin([first])
    for i, thread in enumerate(others):
        os.sched_setaffinity(thread, {cores[1:][i % (len(cores) - 1)] if len(cores) > 1 else cores[0]})


def per_second(images, work):
    work()
    pin_pytorch()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < STRETCH:
        work()
        calls += 1
    return calls * images / (time.perf_counter() - start)


def measure(process, row):
    """Images per second of us, of PyTorch and of compiled PyTorch, a list of rounds each; the last may be empty."""
    images, eager, compiled = works(*row)
    found = [], [], []
    for _ in range(rounds):
        pin(threads_of(process.pid)[1:])  # its first thread waits for the others
        print(*row, file=process.stdin, flush=True)
        found[0].append(float(process.stdout.readline()))
        found[1].append(per_second(images, eager))
        if compiled is not None:
            found[2].append(per_second(images, compiled))
    return found


def show(row, found):
    work, name, size, batch = row
    mine, eager, compiled = found
    cells = [f"{statistics.median(mine):.1f}"]
    for theirs in (eager, compiled):
        ratios = [a / b for a, b in zip(mine, theirs)]
        cells += [f"{statistics.median(theirs):.1f}", f"{statistics.median(ratios):.2f}"] if theirs else ["", ""]
    print(f"| {name}, {size}×{size} | {batch} | {work} |", " | ".join(cells), "|", flush=True)


print("| network | batch | | ours | PyTorch | ratio | compiled | ratio |\n|---|---|---|---|---|---|---|---|", flush=True)
environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}  # those are for PyTorch
environment["RAYON_NUM_THREADS"] = str(threads)
with subprocess.Popen([ours, *files], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    medians = {}
    for row in ROWS:
        found = measure(process, row)
        medians[row[0]] = [statistics.median(rates) for rates in found[:2]]
        show(row, found)
    process.stdin.close()
for who, photos_per_second, decoded in zip(("ours", "PyTorch and Pillow"), medians["photos"], medians["decode"]):
    share = 100 * photos_per_second / decoded
    print(f"\n{who}: decoding and scaling alone {decoded:.0f} photos/s, {share:.0f} % of the time from JPEG to features")
