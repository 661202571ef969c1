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

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "crates/labelsieve-networks/tests/golden"))
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


class Block(nn.Module):
    """A block of a vision transformer, with PyTorch's fused attention, as timm has it."""

    def __init__(self, width, layer_scale):
        super().__init__()
        self.heads = width // 64
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scales = nn.ParameterList(torch.ones(width) for _ in range(2)) if layer_scale else None

    def forward(self, x):
        n, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(n, tokens, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*qkv.unbind(0)).transpose(1, 2).reshape(n, tokens, width)
        attended = self.proj(attended)
        x = x + (attended if self.scales is None else attended * self.scales[0])
        hidden = self.fc2(F.gelu(self.fc1(self.norm2(x))))
        return x + (hidden if self.scales is None else hidden * self.scales[1])


class Vit(nn.Module):
    def __init__(self, width, patch, layer_scale):
        super().__init__()
        tokens = (224 // patch) ** 2 + 1
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, layer_scale) for _ in range(12)))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.positions
        return self.norm(self.blocks(x)[:, 0])


def measure_vit(net, n):
    """Images per second from the host in bf16: as it is, and by torch.compile."""
    net = net.cuda().bfloat16().eval()
    host = torch.randint(0, 256, (n, 224, 224, 3), dtype=torch.uint8).pin_memory()
    mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)

    def embed(network):
        x = host.cuda(non_blocking=True).permute(0, 3, 1, 2)
        return network(((x.float() / 255 - mean) / deviation).bfloat16()).float().cpu()

    with torch.inference_mode():
        plain = rate(lambda: embed(net), n)
        try:
            compiled = torch.compile(net)
            return plain, rate(lambda: embed(compiled), n)
        except Exception as error:  # no compiler on this machine
            print(f"torch.compile failed: {type(error).__name__}", file=sys.stderr)
            return plain, float("nan")


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
    print("\n| network, batch | PyTorch, from the host | by torch.compile | labelsieve, from the host | ratios |")
    print("|---|---|---|---|---|")
    for name, net, n in [("vit-s14-224", Vit(384, 14, True), 256), ("vit-b16-224", Vit(768, 16, False), 256)]:
        plain, compiled = measure_vit(net, n)
        mine = ours.get((name, "embed"), float("nan"))
        print(f"| {name}, {n} | {plain:,.0f} | {compiled:,.0f} | {mine:,.0f} | {mine / plain:.2f}, {mine / compiled:.2f} |",
              flush=True)


main()
