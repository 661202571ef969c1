"""Makes the ONNX files of the tests and what PyTorch says of them: python make_models.py, with torch, onnx and onnxruntime.

Every model is exported by torch.onnx from a network of random weights. features.json holds, for the same eight images, the
features that PyTorch computes; they are compared with Python's onnxruntime before they are written.
"""

import json
import pathlib

import numpy as np
import onnxruntime
import torch
from torch import nn

HERE = pathlib.Path(__file__).parent
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def images(n, height, width):
    """Bytes that the Rust test makes in the same way: n images, rows, columns, channels."""
    i = np.arange(n * height * width * 3, dtype=np.uint64)
    return ((i * 2654435761 % 2**32) >> 24).astype(np.uint8).reshape(n, height, width, 3)


class Cnn(nn.Module):
    """A few convolutions and a mean over the image: any size will do."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )

    def forward(self, x):
        return self.body(x)


class Vit(nn.Module):
    """One block over patches; tokens and their pooled first one, as exports of transformers have them."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, stride=8)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.position = nn.Parameter(torch.randn(1, 10, 16))
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, activation="gelu", batch_first=True, norm_first=True)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        x = self.block(x)
        return x, torch.tanh(x[:, 0])


class Bytes(nn.Module):
    """Pixels as they are, channels last: it normalises them itself."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        x = x.float().permute(0, 3, 1, 2) / 255
        x = (x - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
        return self.body(x).flatten(1)


class TwoInputs(nn.Module):
    def forward(self, pixel_values, scale):
        return pixel_values.mean((2, 3)) * scale


class TwoRows(nn.Module):
    """Two outputs that may both be the features."""

    def forward(self, x):
        return x.mean((2, 3)), x.amax((2, 3))


def export(name, model, example, inputs=("x",), outputs=("features",), dynamic=None):
    path = HERE / f"{name}.onnx"
    torch.onnx.export(
        model, example, str(path), input_names=list(inputs), output_names=list(outputs), dynamic_axes=dynamic,
        dynamo=False, opset_version=17,
    )
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def check(session, given, expected, output=0):
    found = session.run(None, {session.get_inputs()[0].name: given})[output]
    assert np.abs(found.reshape(expected.shape) - expected).max() < (1e-4 if given.dtype != np.float16 else 2e-2)


@torch.no_grad()
def main():
    torch.backends.mha.set_fastpath_enabled(False)  # which no ONNX operator has
    torch.manual_seed(17)
    cnn, vit = Cnn().eval(), Vit().eval()
    for layer in cnn.body:
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.3)
            layer.running_var.uniform_(0.5, 2)
    pixels = images(8, 24, 24)
    x = (torch.tensor(pixels).permute(0, 3, 1, 2) / 255 - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
    wide = images(8, 20, 32)
    x_wide = (torch.tensor(wide).permute(0, 3, 1, 2) / 255 - 0.5) / 0.5
    of_cnn, of_vit, of_wide = cnn(x).flatten(1).numpy(), vit(x)[1].numpy(), cnn(x_wide).flatten(1).numpy()

    session = export("cnn", cnn, x[:1], dynamic={"x": {0: "batch", 2: "height", 3: "width"}, "features": {0: "batch"}})
    check(session, x.numpy(), of_cnn)
    check(session, x_wide.numpy(), of_wide)
    session = export("cnn-3-at-once", cnn, x[:3])  # for three images, no more and no less
    check(session, x[:3].numpy(), of_cnn[:3])
    session = export("cnn-bytes", Bytes(cnn), torch.tensor(pixels[:1]), dynamic={"x": {0: "batch"}, "features": {0: "batch"}})
    check(session, pixels, of_cnn)
    session = export("cnn-f16", Cnn().half().eval(), x[:1].half(), dynamic={"x": {0: "batch"}, "features": {0: "batch"}})
    of_f16 = session.run(None, {"x": x.half().numpy()})[0].astype(np.float32).reshape(8, -1)
    session = export(
        "vit", vit, x[:1], ("pixel_values",), ("last_hidden_state", "pooler_output"),
        {"pixel_values": {0: "batch"}, "last_hidden_state": {0: "batch"}, "pooler_output": {0: "batch"}},
    )
    check(session, x.numpy(), of_vit, output=1)
    export("two-inputs", TwoInputs(), (x[:1], torch.ones(1)), ("pixel_values", "scale"))
    export("two-rows", TwoRows(), x[:1], outputs=("mean", "most"), dynamic={n: {0: "batch"} for n in ("x", "mean", "most")})

    def rounded(rows):
        return [[round(float(value), 6) for value in row] for row in rows]

    features = {"cnn": rounded(of_cnn), "cnn_20x32_half": rounded(of_wide), "vit": rounded(of_vit), "cnn_f16": rounded(of_f16)}
    (HERE / "features.json").write_text(json.dumps(features) + "\n")


if __name__ == "__main__":
    main()
