"""Class names as clean examples: `embed_text_files`, and `class_text` of `score_files` and `train_files`."""

import json

import numpy as np
import pytest
from conftest import REPOSITORY

import labelsieve

TOWERS = REPOSITORY / "crates/labelsieve-networks/tests/golden/towers"


@pytest.mark.parametrize("model", ["clip", "clip-old", "siglip", "open_clip"])
def test_rows_of_classes_are_those_of_the_libraries(tmp_path, model):
    golden = json.loads((TOWERS / "features.json").read_text())
    output = tmp_path / "text.parquet"
    with pytest.warns(UserWarning, match="truncated"):
        summary = labelsieve.embed_text_files(TOWERS / model, TOWERS / "classes.toml", output, templates=golden["templates"])
    assert (summary["n_classes"], summary["n_texts"]) == (5, 26) and summary["n_truncated"] > 0
    rows = labelsieve.read_features(output)
    assert list(rows.ids) == [f"text:{name}" for name in rows.y]
    expected = np.array([golden["towers"][model]["classes"][name] for name in rows.y])
    assert np.abs(rows.X - expected).max() < 1e-4


def test_texts_alone_are_clean_examples(tmp_path, sample, monkeypatch):
    monkeypatch.chdir(tmp_path)
    classes = sorted(set(sample.y))
    means = np.stack([sample.X[(sample.y == name) & sample.is_clean].mean(0) for name in classes])
    noisy = ~sample.is_clean
    np.savez("text.npz", features=means, labels=np.arange(len(classes)))
    np.savez("noisy.npz", features=sample.X[noisy], labels=np.searchsorted(classes, sample.y[noisy]))
    summary = labelsieve.score_files(None, "noisy.npz", "relevance.parquet", class_text="text.npz")
    assert summary["class_texts"] == {"n_classes": 6, "n_text_only": 6}
    relevance = labelsieve.read_relevance("relevance.parquet")
    assert list(np.asarray(relevance["id"])[np.asarray(relevance["is_clean"])]) == [f"text:{i}" for i in range(6)]
    labelsieve.train_files(None, "noisy.npz", "relevance.parquet", "model.safetensors", class_text="text.npz")
    with pytest.raises(ValueError, match="clean: expected a file, unless class_text is given"):
        labelsieve.score_files(None, "noisy.npz", "relevance.parquet")
    with pytest.raises(FileNotFoundError, match="cannot open `none.npz`"):
        labelsieve.score_files(None, "noisy.npz", "relevance.parquet", class_text="none.npz")
