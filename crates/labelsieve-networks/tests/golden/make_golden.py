"""Expected features and losses of the networks, from PyTorch definitions of our own.

    python make_golden.py > networks.json

Nothing is stored but results: weights and images are drawn by the same counter-based generator as in
`labelsieve::random::Stream` (SplitMix64 by position, Box and Muller), which this script implements in numpy. Each network is
asked for features in evaluation mode, takes three steps of SGD (Nesterov, cosine classifier), and is asked again. ResNet-50
takes one small step only: on so few pixels its losses in single and double precision part by 1 % after two, in PyTorch too.
Made with PyTorch 2.15 on the CPU, in double precision.
"""
import json
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from networks import ConvNet, EfficientNetLite0, ResNet

torch.set_default_dtype(torch.float64)
warnings.filterwarnings("ignore", "overflow")  # 64-bit arithmetic wraps round, as it should

GOLDEN, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def mix(x):
    x = np.asarray(x, dtype=np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Stream:
    def __init__(self, seed=None, key=None):
        self.key = key if key is not None else int(mix((seed + GOLDEN) & MASK))

    def branch(self, label):
        return Stream(key=int(mix(self.key ^ int(mix((label + GOLDEN) & MASK)))))

    def bits(self, n):
        positions = np.arange(n, dtype=np.uint64) * np.uint64(GOLDEN)
        return mix(np.uint64(self.key) + positions)

    def normal(self, n):
        bits = self.bits(n)
        radius = ((bits >> np.uint64(32)).astype(np.float64) + 1.0) / 4294967297.0
        angle = (bits & np.uint64(0xFFFFFFFF)).astype(np.float64) / 4294967296.0
        return (np.sqrt(-2.0 * np.log(radius)) * np.cos(2 * np.pi * angle)).astype(np.float32)


def ordered_tensors(network):
    """Names in the order in which labelsieve lists them: a shortcut's convolution stands before the last normalisation."""
    names = [name for name, _ in network.state_dict().items() if "num_batches" not in name]
    groups = {}
    for name in names:
        groups.setdefault(name.rsplit(".", 1)[0], []).append(name)
    order = list(groups)
    for group in list(order):
        if group.endswith("downsample.0"):
            block = group[: -len(".downsample.0")]
            last = max(g for g in order if g.startswith(block + ".bn"))
            shortcut = [group, group[:-1] + "1"]
            order = [g for g in order if g not in shortcut]
            at = order.index(last)
            order[at:at] = shortcut
    return [name for group in order for name in groups[group]]


def case(name, network, height, width, n_classes, images, seed, rate=0.01, steps=3):
    torch.manual_seed(0)
    stream, state = Stream(seed), network.state_dict()
    with torch.no_grad():
        dim = network.eval()(torch.zeros(1, 3, height, width)).shape[1]
        position = -1
        for position, key in enumerate(ordered_tensors(network)):
            tensor = state[key]
            if tensor.dim() == 4:
                out, _, k, _ = tensor.shape
                if "depthwise" in key:
                    out = 1  # outputs that a number of the input reaches
                values = np.float32(np.sqrt(np.float32(2.0 / (out * k * k)))) * stream.branch(position).normal(tensor.numel())
                tensor.copy_(torch.from_numpy(values).view_as(tensor))
        values = np.float32(np.sqrt(np.float32(2.0 / dim))) * stream.branch(position + 1).normal(n_classes * dim)
    weights = nn.Parameter(torch.from_numpy(values).double().view(n_classes, dim).clone())
    scale = nn.Parameter(torch.tensor(10.0))
    pixels = (Stream(seed + 1).bits(images * height * width * 3) >> np.uint64(56)).astype(np.float64)
    x = torch.from_numpy(pixels).view(images, height, width, 3).permute(0, 3, 1, 2) / 255
    x = (x - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    classes = torch.arange(images) % n_classes
    row_weights = torch.tensor([0.1 + 0.2 * (i % 3) for i in range(images)])

    def features():
        with torch.no_grad():
            return [round(v, 6) for v in network.eval()(x).flatten()[::37].tolist()]

    result = {"name": name, "height": height, "width": width, "n_classes": n_classes, "images": images, "seed": seed, "rate": rate}
    result["before"] = features()
    groups = [{"params": list(network.parameters()) + [weights], "weight_decay": 5e-4}, {"params": [scale], "weight_decay": 0.0}]
    sgd = torch.optim.SGD(groups, lr=rate, momentum=0.9, nesterov=True)
    network.train()
    losses = []
    for _ in range(steps):
        logits = scale * F.normalize(network(x)) @ F.normalize(weights).t()
        loss = (row_weights * F.cross_entropy(logits, classes, reduction="none")).sum()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    result.update(losses=losses, after=features(), scale=scale.item())
    return result


cases = [
    case("resnet10 photo", ResNet([1, 1, 1, 1], False, False, False), 72, 64, 5, 4, 1),
    case("resnet10 small", ResNet([1, 1, 1, 1], False, False, True), 32, 40, 3, 5, 2),
    case("resnet18 photo", ResNet([2, 2, 2, 2], False, True, False), 64, 64, 4, 3, 3),
    case("resnet50 photo", ResNet([3, 4, 6, 3], True, True, False), 64, 64, 4, 6, 4, 1e-5, 1),
    case("convnet128 photo", ConvNet(), 84, 84, 5, 3, 5),
    case("efficientnet-lite0 photo", EfficientNetLite0(), 97, 128, 3, 6, 6, 1e-4, 2),
]
print(json.dumps(cases, indent=0))
