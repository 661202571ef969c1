"""The networks of the paper in PyTorch on a GPU: images per second of training steps and of embedding.

Autocast to bf16, channels last, cuDNN's own search for the fastest convolutions. Batches are f32 numbers in the GPU's memory
beforehand ("on the GPU"), or bytes in page-locked host memory that are sent and normalised in every step ("from the host"),
which is what `labelsieve` does. With the output of the `networks` example as argument, prints both side by side.
"""

import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES = 100



class Block(nn.Module):
    def __init__(self, c_in, c_out, stride, relu):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.relu = relu
        self.short = None
        if stride != 1 or c_in != c_out:
            self.short = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y)) + (x if self.short is None else self.short(x))
        return F.relu(y, inplace=True) if self.relu else y


class Bottleneck(nn.Module):
    def __init__(self, c_in, width, stride, relu):
        super().__init__()
        c_out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(c_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, c_out, 1, bias=False), nn.BatchNorm2d(c_out)
        self.short = None
        if stride != 1 or c_in != c_out:
            self.short = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y)) + (x if self.short is None else self.short(x))
        return F.relu(y, inplace=True)


def resnet(small, block=Block, counts=(1, 1, 1, 1), last_relu=False):
    stem = nn.Conv2d(3, 64, 3, 1, 1, bias=False) if small else nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    layers = [stem, nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    c = 64
    for stage, (width, count) in enumerate(zip((64, 128, 256, 512), counts)):
        for i in range(count):
            relu = last_relu or stage < 3 or i + 1 < count
            layers.append(block(c, width, 2 if stage and not i else 1, relu))
            c = width * (4 if block is Bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), c


def convnet(size):
    layers, c = [], 3
    for i, width in enumerate((64, 64, 128, 128)):
        layers += [nn.Conv2d(c, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)]
        layers += [nn.ReLU(inplace=True)] if i < 3 else []
        layers += [nn.MaxPool2d(2)]
        c = width
    return nn.Sequential(*layers, nn.Flatten()), c * (size // 16) ** 2


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


def measure(net, dim, size, n):
    net = net.cuda().to(memory_format=torch.channels_last)
    head = Head(dim).cuda()
    parameters = list(net.parameters()) + list(head.parameters())
    optimiser = torch.optim.SGD(parameters, 0.01, 0.9, weight_decay=5e-4, nesterov=True)
    host = torch.randint(0, 256, (n, size, size, 3), dtype=torch.uint8).pin_memory()
    mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)
    labels = torch.arange(n, device="cuda") % CLASSES

    def from_host():
        x = host.cuda(non_blocking=True).permute(0, 3, 1, 2)
        return (x.float() / 255 - mean) / deviation

    ready = from_host()

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
    for name, (net, dim), size, n in [
        ("resnet10-224", resnet(False), 224, 128),
        ("convnet128-84", convnet(84), 84, 256),
        ("resnet10-64", resnet(True), 64, 256),
        ("resnet50-224", resnet(False, Bottleneck, (3, 4, 6, 3), True), 224, 128),
    ]:
        for what, (ready, host) in zip(("train", "embed"), measure(net, dim, size, n)):
            mine = ours.get((name, what), float("nan"))
            print(f"| {name}, {n} | {what} | {ready:,.0f} | {host:,.0f} | {mine:,.0f} | "
                  f"{mine / ready:.2f}, {mine / host:.2f} |", flush=True)


main()
