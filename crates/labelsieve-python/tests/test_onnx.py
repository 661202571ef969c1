"""`embed_files` with a network in an ONNX file, exported here, beside PyTorch and Python's onnxruntime."""

import json

import numpy as np
import pytest

import labelsieve

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
Image = pytest.importorskip("PIL.Image")

MEAN, STD = np.float32([0.5, 0.4, 0.3]), np.float32([0.2, 0.25, 0.3])


class Patches(torch.nn.Module):
    """Patches, one attention over them, and the mean: a transformer in small."""

    def __init__(self):
        super().__init__()
        self.patches = torch.nn.Conv2d(3, 16, 8, stride=8)
        self.qkv = torch.nn.Linear(16, 48)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, pixel_values):
        x = self.patches(pixel_values).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + torch.softmax(q @ k.transpose(1, 2) / 4, -1) @ v
        return x, self.norm(x).mean(1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Seven photos of 32x32 and a model for them."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model = Patches().eval()
    names = {name: {0: "batch"} for name in ("pixel_values", "last_hidden_state", "pooled")}
    torch.onnx.export(
        model, torch.zeros(1, 3, 32, 32), "model.onnx", input_names=["pixel_values"],
        output_names=["last_hidden_state", "pooled"], dynamic_axes=names, dynamo=False,
    )
    (tmp_path / "photos").mkdir()
    photos = np.random.default_rng(0).integers(0, 256, (7, 32, 32, 3), dtype=np.uint8)
    for i, photo in enumerate(photos):
        Image.fromarray(photo).save(tmp_path / "photos" / f"{i}.png")
    x = ((photos / np.float32(255) - MEAN) / STD).transpose(0, 3, 1, 2)
    with torch.no_grad():
        expected = model(torch.from_numpy(np.ascontiguousarray(x)))[1].numpy()
    theirs = onnxruntime.InferenceSession("model.onnx").run(["pooled"], {"pixel_values": np.ascontiguousarray(x)})[0]
    assert np.abs(theirs - expected).max() < 1e-4
    return expected / np.linalg.norm(expected, axis=1, keepdims=True)


def test_features_are_those_of_pytorch_and_onnxruntime(folder):
    options = {"image_mean": MEAN.tolist(), "image_std": STD.tolist(), "batch": 3, "device": "cpu"}
    summary = labelsieve.embed_files("model.onnx", "photos", "features.npz", **options)
    assert (summary["n_images"], summary["dim"]) == (7, 16)
    assert np.abs(np.load("features.npz")["features"] - folder).max() < 1e-4
    with open("model.json", "w") as sidecar:
        json.dump({"image_mean": MEAN.tolist(), "image_std": STD.tolist(), "size": {"height": 32, "width": 32}}, sidecar)
    labelsieve.embed_files("model.onnx", "photos", "again.npz", onnx_output="pooled", batch=7)
    assert np.abs(np.load("again.npz")["features"] - folder).max() < 1e-4


def test_what_does_not_fit_is_refused(folder):
    with pytest.raises(ValueError, match="a row of numbers for each"):
        labelsieve.embed_files("model.onnx", "photos", "features.npz", onnx_output="last_hidden_state")
    with pytest.raises(ValueError, match="takes images of 32×32, but `image_size` says 64×64"):
        labelsieve.embed_files("model.onnx", "photos", "features.npz", image_size=64)
    with pytest.raises(ValueError, match="image_std: expected positive numbers"):
        labelsieve.embed_files("model.onnx", "photos", "features.npz", image_std=0)
    with pytest.raises(ValueError, match="image_mean: expected one number or three"):
        labelsieve.embed_files("model.onnx", "photos", "features.npz", image_mean=[1, 2])
