"""The networks of the paper in PyTorch, with torchvision's names, and EfficientNet-Lite0: what our own are compared with."""
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, before, width, stride, bottleneck, relu):
        super().__init__()
        after = 4 * width if bottleneck else width
        conv = lambda a, b, k, s: nn.Conv2d(a, b, k, s, k // 2, bias=False)
        if bottleneck:
            self.conv1, self.bn1 = conv(before, width, 1, 1), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
            self.conv3, self.bn3 = conv(width, after, 1, 1), nn.BatchNorm2d(after)
        else:
            self.conv1, self.bn1 = conv(before, width, 3, stride), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = conv(width, width, 3, 1), nn.BatchNorm2d(width)
        self.downsample = None
        if before != after or stride != 1:
            self.downsample = nn.Sequential(conv(before, after, 1, stride), nn.BatchNorm2d(after))
        self.bottleneck, self.relu = bottleneck, relu

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        if self.bottleneck:
            y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
        else:
            y = self.bn2(self.conv2(y))
        y = y + (x if self.downsample is None else self.downsample(x))
        return F.relu(y) if self.relu else y


class ResNet(nn.Module):
    def __init__(self, blocks, bottleneck, last_relu, small_stem):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False) if small_stem else nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        before = 64
        for stage, (width, count) in enumerate(zip([64, 128, 256, 512], blocks)):
            layers = []
            for i in range(count):
                relu = last_relu or stage < 3 or i + 1 < count
                layers.append(Block(before, width, 2 if stage > 0 and i == 0 else 1, bottleneck, relu))
                before = 4 * width if bottleneck else width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean((2, 3))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        before = 3
        for i, width in enumerate([64, 64, 128, 128]):
            block = nn.Module()
            block.conv, block.bn = nn.Conv2d(before, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
            setattr(self, f"block{i}", block)
            before = width

    def forward(self, x):
        for i in range(4):
            block = getattr(self, f"block{i}")
            x = block.bn(block.conv(x))
            x = F.max_pool2d(F.relu(x) if i < 3 else x, 2)
        return x.flatten(1)


class SameConv(nn.Conv2d):
    """Zeros as TensorFlow places them: an output for every stride-th pixel, the odd zero behind the image."""

    def forward(self, x):
        zeros = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1]):
            n = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            zeros += [n // 2, n - n // 2]
        return F.conv2d(F.pad(x, zeros), self.weight, None, self.stride, 0, 1, self.groups)


class InvertedBlock(nn.Module):
    def __init__(self, before, after, widening, kernel, stride):
        super().__init__()
        inside = before * widening
        bn = lambda width: nn.BatchNorm2d(width, eps=1e-3)
        if widening > 1:
            self._expand_conv, self._bn0 = SameConv(before, inside, 1, bias=False), bn(inside)
        self._depthwise_conv = SameConv(inside, inside, kernel, stride, groups=inside, bias=False)
        self._bn1 = bn(inside)
        self._project_conv, self._bn2 = SameConv(inside, after, 1, bias=False), bn(after)
        self.shortcut = stride == 1 and before == after

    def forward(self, x):
        y = F.relu6(self._bn0(self._expand_conv(x))) if hasattr(self, "_expand_conv") else x
        y = F.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return y + x if self.shortcut else y


class EfficientNetLite0(nn.Module):
    def __init__(self):
        super().__init__()
        self._conv_stem, self._bn0 = SameConv(3, 32, 3, 2, bias=False), nn.BatchNorm2d(32, eps=1e-3)
        self._blocks, before = nn.ModuleList(), 32
        stages = [(1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112),
                  (4, 5, 2, 6, 192), (1, 3, 1, 6, 320)]
        for count, kernel, stride, widening, width in stages:
            for i in range(count):
                self._blocks.append(InvertedBlock(before, width, widening, kernel, stride if i == 0 else 1))
                before = width
        self._conv_head, self._bn1 = SameConv(320, 1280, 1, bias=False), nn.BatchNorm2d(1280, eps=1e-3)

    def forward(self, x):
        x = F.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        return F.relu6(self._bn1(self._conv_head(x))).mean((2, 3))
