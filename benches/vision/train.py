"""The `small` recipe of `labelsieve pretrain` in PyTorch: an independent run to compare accuracies with.

    python benches/vision/train.py tiny-lowshot.parquet wnid resnet10.safetensors

trains ResNet-10 (stem 3×3, images of 64×64) on the rows with role `base` and split `train`, prints its accuracy on the
`test` rows, and writes its weights under torchvision's names, which `labelsieve embed` reads. Needs torch, torchvision,
safetensors and pyarrow.
"""
import io
import math
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "crates/labelsieve-networks/tests/golden"))
from networks import ResNet  # noqa: E402

SIZE, BATCH, EPOCHS, CROP = 64, 256, 60, float(sys.argv[4]) if len(sys.argv) > 4 else 0.35
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def rows(path, label):
    """(label, split, bytes) of every base row."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(path, columns=[label, "role", "split", "image"]).to_pydict()
    for name, role, split, image in zip(table[label], table["role"], table["split"], table["image"]):
        if role == "base":
            yield name, split, image


def load(path, label):
    sets = {"train": ([], []), "test": ([], [])}
    for name, split, image in rows(path, label):
        image = Image.open(io.BytesIO(image)).convert("RGB").resize((SIZE, SIZE), Image.BILINEAR)
        sets[split][0].append(np.asarray(image))
        sets[split][1].append(name)
    classes = sorted(set(sets["train"][1]))
    number = {name: i for i, name in enumerate(classes)}
    to = lambda images: torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous().to(DEVICE)
    return {split: (to(images), np.array([number[name] for name in names])) for split, (images, names) in sets.items()}, classes


def balanced_order(labels, length, rng):
    """Every class equally often, the images of a class in turn."""
    members = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
    decks = [np.empty(0, dtype=int) for _ in members]
    order = []
    while len(order) < length:
        for c in rng.permutation(len(members)):
            if len(decks[c]) == 0:
                decks[c] = rng.permutation(members[c])
            order.append(decks[c][0])
            decks[c] = decks[c][1:]
    return np.array(order[:length])


def augment(images):
    """Random resized crop, flip, jitter of brightness, contrast and saturation by 0.4."""
    n = len(images)
    uniform = lambda a, b: torch.empty(n, device=DEVICE).uniform_(a, b)
    area = torch.empty(n, 10, device=DEVICE).uniform_(CROP, 1.0)
    ratio = torch.exp(torch.empty(n, 10, device=DEVICE).uniform_(math.log(3 / 4), math.log(4 / 3)))
    w, h = (area * ratio).sqrt(), (area / ratio).sqrt()
    fits = (w <= 1) & (h <= 1)  # the first of ten draws that fits, else all of the image
    first = fits.float().argmax(1, keepdim=True)
    w, h = (torch.where(fits.any(1), side.gather(1, first).squeeze(1), 1.0) for side in (w, h))
    x, y = uniform(-1, 1) * (1 - w), uniform(-1, 1) * (1 - h)
    flip = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    theta = torch.zeros(n, 2, 3, device=DEVICE)
    theta[:, 0, 0], theta[:, 0, 2], theta[:, 1, 1], theta[:, 1, 2] = w * flip, x, h, y
    x = F.grid_sample(images.float() / 255, F.affine_grid(theta, images.shape, align_corners=False), align_corners=False)
    column = lambda v: v.view(n, 1, 1, 1)
    x = (x * column(uniform(0.6, 1.4))).clamp(0, 1)
    grey = lambda x: (x * torch.tensor([0.299, 0.587, 0.114], device=DEVICE).view(3, 1, 1)).sum(1, keepdim=True)
    x = (grey(x).mean((2, 3), keepdim=True) * (1 - (c := column(uniform(0.6, 1.4)))) + x * c).clamp(0, 1)
    return (grey(x) * (1 - (s := column(uniform(0.6, 1.4)))) + x * s).clamp(0, 1)


def normalise(x):
    mean, deviation = torch.tensor([0.485, 0.456, 0.406], device=DEVICE), torch.tensor([0.229, 0.224, 0.225], device=DEVICE)
    return ((x - mean.view(3, 1, 1)) / deviation.view(3, 1, 1)).contiguous(memory_format=torch.channels_last)


def main():
    path, label, output = sys.argv[1:4]
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    sets, classes = load(path, label)
    images, labels = sets["train"]
    network = ResNet([1, 1, 1, 1], False, False, True)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            out, _, k, _ = module.weight.shape
            torch.nn.init.normal_(module.weight, 0, math.sqrt(2 / (k * k * out)))
    network = network.to(DEVICE, memory_format=torch.channels_last)
    weights = torch.nn.Parameter(torch.randn(len(classes), 512, device=DEVICE) * math.sqrt(2 / 512))
    scale = torch.nn.Parameter(torch.tensor(10.0, device=DEVICE))
    groups = [{"params": [*network.parameters(), weights]}, {"params": [scale], "weight_decay": 0.0}]
    sgd = torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    logits = lambda x: scale * F.normalize(network(x).float()) @ F.normalize(weights).t()
    batches = math.ceil(len(images) / BATCH)
    start = time.perf_counter()
    for epoch in range(EPOCHS):
        for group in sgd.param_groups:
            group["lr"] = 0.05 * (1 + math.cos(math.pi * epoch / (EPOCHS - 1)))
        network.train()
        order = balanced_order(labels, batches * BATCH, rng)
        total = 0.0
        for chosen in order.reshape(batches, BATCH):
            target = torch.from_numpy(labels[chosen]).to(DEVICE)
            with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
                loss = F.cross_entropy(logits(normalise(augment(images[torch.from_numpy(chosen).to(DEVICE)]))), target)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.detach()
        if epoch % 10 == 9 or epoch + 1 == EPOCHS:
            network.eval()
            test, truth = sets["test"]
            with torch.no_grad():
                best = torch.cat([logits(normalise(part.float() / 255)).argmax(1) for part in test.split(512)])
            right = (best.cpu().numpy() == truth).mean()
            print(f"epoch {epoch + 1}: loss {float(total) / batches:.3f}, base test accuracy {100 * right:.1f} %", flush=True)
    print(f"{EPOCHS * batches * BATCH / (time.perf_counter() - start):.0f} images per second")
    state = {name: value.contiguous() for name, value in network.state_dict().items() if "num_batches" not in name}
    save_file({name: value.half() if value.dim() > 1 else value for name, value in state.items()}, output)


main()
