"""The networks of the paper in PyTorch on a GPU: images per second of training steps and of embedding.

Autocast to bf16, channels last, cuDNN's own search for the fastest convolutions. Batches are f32 numbers in the GPU's memory
beforehand ("on the GPU"), or bytes in page-locked host memory that are sent and normalised in every step ("from the host"),
which is what `labelsieve` does. With the output of the `networks` example as argument, prints both side by side.
"""

import pathlib
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "crates/labelsieve-vision/tests/golden"))
from networks import ConvNet, EfficientNetLite0, ResNet  # noqa: E402

CLASSES = 100


class Head(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CLASSES, dim) * (2 / dim) ** 0.5)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, x):
        return self.scale * F.linear(F.normalize(x.float()), F.normalize(self.weight))


def rate(run, n, times=20):
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(times):
            run()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return times * n / best


def measure(net, size, n):
    net = net.cuda().to(memory_format=torch.channels_last)
    host = torch.randint(0, 256, (n, size, size, 3), dtype=torch.uint8).pin_memory()
    mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)
    labels = torch.arange(n, device="cuda") % CLASSES

    def from_host():
        x = host.cuda(non_blocking=True).permute(0, 3, 1, 2)
        return (x.float() / 255 - mean) / deviation

    ready = from_host()
    with torch.no_grad():
        head = Head(net(ready).shape[1]).cuda()
    parameters = list(net.parameters()) + list(head.parameters())
    optimiser = torch.optim.SGD(parameters, 0.01, 0.9, weight_decay=5e-4, nesterov=True)

    def step(images):
        with torch.autocast("cuda", torch.bfloat16):
            features = net(images)
        loss = F.cross_entropy(head(features), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    @torch.no_grad()
    def embed(images):
        with torch.autocast("cuda", torch.bfloat16):
            return net(images).float()

    net.train()
    train = rate(lambda: step(ready), n), rate(lambda: step(from_host()), n)
    net.eval()
    return train, (rate(lambda: embed(ready), n), rate(lambda: embed(from_host()).cpu(), n))


def main():
    torch.backends.cudnn.benchmark = True
    ours = {}
    if len(sys.argv) > 1:
        for line in open(sys.argv[1]):
            network, what, value = line.split()
            ours[network, what] = float(value)
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}")
    print("| network, batch | | PyTorch, on the GPU | PyTorch, from the host | labelsieve, from the host | ratios |")
    print("|---|---|---|---|---|---|")
    for name, net, size, n in [
        ("resnet10-224", ResNet([1, 1, 1, 1], False, False, False), 224, 128),
        ("convnet128-84", ConvNet(), 84, 256),
        ("resnet10-64", ResNet([1, 1, 1, 1], False, False, True), 64, 256),
        ("resnet50-224", ResNet([3, 4, 6, 3], True, True, False), 224, 128),
        ("efficientnet-lite0-224", EfficientNetLite0(), 224, 128),
    ]:
        for what, (ready, host) in zip(("train", "embed"), measure(net, size, n)):
            mine = ours.get((name, what), float("nan"))
            print(f"| {name}, {n} | {what} | {ready:,.0f} | {host:,.0f} | {mine:,.0f} | "
                  f"{mine / ready:.2f}, {mine / host:.2f} |", flush=True)


main()
