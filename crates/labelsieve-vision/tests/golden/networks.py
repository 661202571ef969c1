"""The networks of the paper in PyTorch, with torchvision's names: what our own are compared with."""
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
