"""Files of the command line, read and written from Python."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import labelsieve


def command(*arguments, cwd, check=True):
    return subprocess.run([sys.executable, "-m", "labelsieve", *arguments], cwd=cwd, check=check, capture_output=True, text=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Generated features as a user's files, cleaned and learned from on the command line."""
    folder, data = tmp_path_factory.mktemp("demo"), labelsieve.demo_data(n_clean=2)
    names = list(dict.fromkeys(data.y_test))
    parts = {
        "clean": (data.X[data.is_clean], data.y[data.is_clean]),
        "noisy": (data.X[~data.is_clean], data.y[~data.is_clean]),
        "test": (data.X_test, data.y_test),
    }
    for name, (X, y) in parts.items():
        np.savez(folder / f"{name}.npz", features_all=X, labels_all=np.array([names.index(label) for label in y]))
    pools = ["--clean", "clean.npz", "--pool", "noisy.npz"]
    command("score", *pools, "--method", "gcn", "-o", "relevance-gcn.parquet", cwd=folder)
    learn = ["--relevance", "relevance-gcn.parquet", "--classifier", "cosine", "-o", "gcn-cosine.safetensors"]
    command("train", *pools, *learn, cwd=folder)
    return folder


def test_the_files_of_a_run_are_read(demo):
    table = labelsieve.read_relevance(demo / "relevance-gcn.parquet")
    noisy = int(np.flatnonzero(~table["is_clean"])[0])
    assert table["best_clean"][noisy] is not None and table["reciprocal_neighbours"][noisy] >= 0
    assert table["best_clean"][0] is None and np.isnan(table["best_clean_similarity"][0]) and table["is_clean"][0]
    assert (table["relevance"][table["is_clean"]] == 1).all() and '"gcn"' in table.metadata["labelsieve"]
    X, y, ids = labelsieve.read_features(demo / "test.npz")
    assert X.dtype == np.float32 and X.shape == (800, 64) and y[0] == "0" and ids is None
    model = labelsieve.read_classifier(demo / "gcn-cosine.safetensors")
    accuracy = (model.predict(X) == y).mean()
    printed = command("evaluate", "--model", "gcn-cosine.safetensors", "--test", "test.npz", "--json", cwd=demo).stdout
    assert json.loads(printed)["top_1"] == pytest.approx(accuracy)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.settings["classifier"] == "cosine" and model.n_base == 0


def test_probabilities_are_a_column_where_there_are_any(tmp_path):
    columns = {"id": ["a", "b", "c"], "class": ["owl"] * 3, "relevance": [1, 0.5, 0.25], "is_clean": [True, False, False]}
    likely = {**columns, "probability": [1, 0.75, None]}
    for name in ("r.parquet", "r.csv"):
        labelsieve.write_relevance(tmp_path / name, columns)
        assert "probability" not in labelsieve.read_relevance(tmp_path / name)
        labelsieve.write_relevance(tmp_path / name, likely)
        again = labelsieve.read_relevance(tmp_path / name)
        assert list(again)[:5] == ["id", "class", "relevance", "probability", "is_clean"]
        np.testing.assert_array_equal(again["probability"], np.array([1, 0.75, np.nan], np.float32))
        labelsieve.write_relevance(tmp_path / name, again.to_pandas())  # where a missing number is NaN
        np.testing.assert_array_equal(labelsieve.read_relevance(tmp_path / name)["probability"], again["probability"])
    with pytest.raises(ValueError, match=r"row 1: expected a probability in \[0, 1\], found 1.5"):
        labelsieve.write_relevance(tmp_path / "r.parquet", {**columns, "probability": [1, 1.5, 0]})
    (tmp_path / "bad.csv").write_text("id,class,relevance,probability\na,owl,0.5,nan\n")
    with pytest.raises(ValueError, match=r"column `probability`, row 0: expected a number in \[0, 1\], or nothing, found NaN"):
        labelsieve.read_relevance(tmp_path / "bad.csv")


def test_what_python_writes_the_command_line_reads(demo, tmp_path):
    clean, noisy = (labelsieve.read_features(demo / f"{name}.npz") for name in ("clean", "noisy"))
    X, y = np.concatenate([clean.X, noisy.X]), np.concatenate([clean.y, noisy.y])
    is_clean = np.arange(len(X)) < len(clean.X)
    fitted = labelsieve.PrototypeClassifier().fit(X, y, is_clean=is_clean)
    ids = [str(i) for i in range(len(clean.X))] + [str(i) for i in range(len(noisy.X))]
    labelsieve.write_relevance(tmp_path / "r.parquet", fitted.to_table(ids), {"from": "a test"})
    again = labelsieve.read_relevance(tmp_path / "r.parquet")
    np.testing.assert_array_equal(again["relevance"], fitted.relevance_)
    assert again.metadata["from"] == "a test"
    for name in ("best_clean", "reciprocal_neighbours"):
        assert again[name].tolist() == fitted.to_table(ids)[name].tolist()
    pools = ["--clean", demo / "clean.npz", "--pool", demo / "noisy.npz"]
    command("train", *pools, "--relevance", "r.parquet", "--classifier", "prototype", "-o", "m.safetensors", cwd=tmp_path)
    trained = labelsieve.read_classifier(tmp_path / "m.safetensors")
    order = [list(fitted.classes_).index(name) for name in trained.classes_]
    np.testing.assert_allclose(trained.coef_, fitted.coef_[order], atol=1e-6)
    fitted.save(tmp_path / "own.safetensors", backbone="resnet10")
    assert labelsieve.read_classifier(tmp_path / "own.safetensors").backbone == "resnet10"
    network = "resnet10 0123456789abcdef"
    fitted.save(tmp_path / "own.safetensors", backbone="resnet10", network=network)
    assert labelsieve.read_classifier(tmp_path / "own.safetensors").network == network
    command("predict", "--model", "own.safetensors", "--features", demo / "test.npz", "-o", "p.parquet", cwd=tmp_path)


def test_features_keep_the_names_beside_them_and_their_network(tmp_path):
    np.save(tmp_path / "f.npy", np.eye(2, dtype=np.float32))
    assert labelsieve.read_features(tmp_path / "f.npy").network is None
    (tmp_path / "f.npy.ids.csv").write_text("id,class,network\n\"a,b\",owl,resnet10 01\nc,cat,resnet10 01\n")
    examples = labelsieve.read_features(tmp_path / "f.npy")
    X, y, ids = examples
    assert X.shape == (2, 2) and list(y) == ["owl", "cat"] and list(ids) == ["a,b", "c"]
    assert examples.network == "resnet10 01"


def test_a_run_directory_is_read_as_far_as_it_goes(demo, tmp_path):
    with pytest.raises(FileNotFoundError, match="run.json"):
        labelsieve.read_run(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 1, "title": "owls"}')
    run = labelsieve.read_run(tmp_path)
    assert (run.info["title"], run.tables, run.figures, run.relevance, run.truth) == ("owls", [], [], None, None)
    shutil.copy(demo / "relevance-gcn.parquet", tmp_path / "relevance.parquet")
    table = {"id": "t", "title": "T", "columns": [{"name": "k = 1"}], "rows": [{"label": "a", "cells": [{"mean": 1.5}]}]}
    (tmp_path / "tables.json").write_text(json.dumps([table]))
    run = labelsieve.read_run(tmp_path)
    assert run.relevance.n_rows > 100 and run.tables[0]["rows"][0]["cells"][0]["mean"] == 1.5
    (tmp_path / "tables.json").write_text("[{}]")
    with pytest.raises(ValueError, match="tables.json"):
        labelsieve.read_run(tmp_path)


def test_candidates_and_truth_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"id": ["a", "b"], "title": ["an owl", "a cat"]}).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "classes.toml").write_text('[[class]]\nid = "owl"\nnames = ["owl"]\n')
    command("match", "--classes", "classes.toml", "--text", "t.csv", "-o", "c.parquet", cwd=tmp_path)
    table = labelsieve.read_candidates(tmp_path / "c.parquet")
    assert table.to_pandas().to_dict("list") == {"id": ["a"], "class": ["owl"], "matched_name": ["owl"]}
    assert table.to_arrow().column_names == ["id", "class", "matched_name"]
    frame = pandas.DataFrame({"id": ["a"], "class": ["owl"], "relevant": [True]})
    frame.to_parquet(tmp_path / "truth.parquet")
    assert labelsieve.read_truth(tmp_path / "truth.parquet")["relevant"].tolist() == [True]


def test_tables_have_equal_columns_and_can_be_filtered():
    table = labelsieve.Table({"id": ["a", "b"], "score": [0.1, 0.9]})
    assert table.where(table["score"] > 0.5)["id"].tolist() == ["b"] and table.n_rows == 2
    with pytest.raises(ValueError, match="columns: expected equal lengths"):
        labelsieve.Table({"id": ["a"], "score": []})


def test_bad_files_raise_what_python_users_expect(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot open `.*none.parquet`"):
        labelsieve.read_relevance(tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(ValueError, match="bad.parquet` is not a readable Parquet file"):
        labelsieve.read_relevance(tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"relevance, row 0: expected a number in \[0, 1\], found 2"):
        labelsieve.write_relevance(tmp_path / "r.parquet", {"id": ["a"], "class": ["x"], "relevance": [2], "is_clean": [False]})
    assert not (tmp_path / "r.parquet").exists()
    with pytest.raises(ValueError, match="table: expected a column `class`, found id"):
        labelsieve.write_relevance(tmp_path / "r.parquet", {"id": ["a"]})
    with pytest.raises(OSError):
        labelsieve.PrototypeClassifier().fit([[1.0, 0.0]], ["a"], is_clean=True).save(tmp_path / "no/such/folder/m.safetensors")
