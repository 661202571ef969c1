"""The same networks, sizes and batches in PyTorch on the CPU, channels last: one line of JSON per network."""
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
