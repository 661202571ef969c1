"""Decisions: in arrays, in files, and back from other tools."""

import json
import subprocess
import sys

import numpy as np
import pytest

import labelsieve
from test_handoffs import TABLE, answer, exported


@pytest.fixture
def decided(sample):
    """Every fifth candidate, decided by the truth."""
    decisions = np.full(len(sample.y), None, object)
    rows = np.flatnonzero(~sample.is_clean)[::5]
    decisions[rows] = np.where(sample.truth[rows], "accept", "reject")
    return decisions


@pytest.mark.parametrize("method", ["gcn", "mlp", "label-propagation", "similarity", "beta", "auto"])
def test_accepted_candidates_have_relevance_one_and_rejected_ones_zero(sample, decided, method):
    rows = sample.y == sample.y[0]
    clean, noisy = sample.X[rows & sample.is_clean], sample.X[rows & ~sample.is_clean]
    words = decided[rows & ~sample.is_clean]
    found = labelsieve.relevance(clean, noisy, method, decisions=words)
    assert (found[words == "accept"] == 1).all() and (found[words == "reject"] == 0).all()
    assert {"accept", "reject"} & set(words[words != None])  # noqa: E711
    nothing = labelsieve.relevance(clean, noisy, method, decisions=[None] * len(noisy))
    np.testing.assert_array_equal(nothing, labelsieve.relevance(clean, noisy, method))


def test_estimators_take_one_decision_per_row(sample, decided):
    plain = labelsieve.Cleaner().fit(sample.X, sample.y, is_clean=sample.is_clean)
    assert not hasattr(plain, "decisions_") and "decision" not in plain.to_table()
    reviewed = labelsieve.Cleaner().fit(sample.X, sample.y, is_clean=sample.is_clean, decisions=decided)
    assert (reviewed.relevance_[decided == "accept"] == 1).all()
    assert (reviewed.relevance_[decided == "reject"] == 0).all() and (reviewed.sample_weight_[decided == "reject"] == 0).all()
    others = np.array([word is None for word in decided]) & ~sample.is_clean
    assert (reviewed.relevance_[others] != plain.relevance_[others]).any(), "the others follow"
    assert reviewed.to_table()["decision"].tolist() == decided.tolist()
    reviewed.fit(sample.X, sample.y, is_clean=sample.is_clean)
    assert "decision" not in reviewed.to_table(), "of an earlier fit"


def test_classifiers_count_what_was_decided(sample, decided):
    fit = {"is_clean": sample.is_clean, "decisions": decided}
    classifier = labelsieve.PrototypeClassifier().fit(sample.X, sample.y, **fit)
    cleaner = labelsieve.Cleaner().fit(sample.X, sample.y, **fit)
    np.testing.assert_array_equal(classifier.relevance_, cleaner.relevance_)
    known = labelsieve.PrototypeClassifier().fit(sample.X, sample.y, relevance=np.full(len(sample.y), 0.5), **fit)
    assert (known.relevance_[decided == "accept"] == 1).all() and (known.relevance_[decided == "reject"] == 0).all()


@pytest.mark.parametrize(
    "values, message",
    [
        (["accept"], "decisions: expected .* for each of 2 rows, found 1"),
        (["accept", "keep"], "decisions, row 1: expected \"accept\", \"reject\", \"unsure\" or None, found 'keep'"),
        ([1, 0], "decisions, row 0: expected .*, found 1"),
        ({"a": "accept"}, "hint: from a mapping by id, pass"),
    ],
)
def test_what_is_no_decision_is_refused_with_its_row(values, message):
    with pytest.raises(ValueError, match=message):
        labelsieve.relevance([[1.0, 0.0]], [[1.0, 0.1], [0.0, 1.0]], "similarity", decisions=values)


def test_missing_values_are_no_decisions_and_clean_examples_need_none(sample):
    decisions = [float("nan"), "", "undecided", None] + [None] * (len(sample.y) - 4)
    fitted = labelsieve.Cleaner("similarity").fit(sample.X, sample.y, is_clean=sample.is_clean, decisions=decisions)
    assert set(fitted.decisions_.tolist()) == {None}
    decisions = np.where(sample.is_clean, "reject", None)
    with pytest.warns(UserWarning, match="ignoring .* decisions about clean examples"):
        fitted = labelsieve.Cleaner("similarity").fit(sample.X, sample.y, is_clean=sample.is_clean, decisions=decisions)
    assert (fitted.relevance_[sample.is_clean] == 1).all()


def test_files_and_arrays_agree(sample, decided, tmp_path):
    ids = [f"{i}.jpg" for i in range(len(sample.y))]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for name, rows in {"clean": sample.is_clean, "noisy": ~sample.is_clean}.items():
        rows = np.flatnonzero(rows)
        columns = {"id": [ids[row] for row in rows], "class": [str(c) for c in sample.y[rows]], "embedding": list(sample.X[rows])}
        pandas.DataFrame(columns).to_parquet(tmp_path / f"{name}.parquet")
    lines = [f"{id},{label},{word}" for id, label, word in zip(ids, sample.y, decided) if word]
    (tmp_path / "d.csv").write_text("\n".join(["id,class,decision", *lines, ""]))
    pools = [tmp_path / "clean.parquet", tmp_path / "noisy.parquet"]
    done = labelsieve.score_files(*pools, tmp_path / "r.parquet", decisions=tmp_path / "d.csv", device="cpu")
    assert done["decisions"]["n_accept"] == (decided == "accept").sum()
    table = labelsieve.read_relevance(tmp_path / "r.parquet")
    fitted = labelsieve.Cleaner(device="cpu").fit(sample.X, sample.y.astype(str), is_clean=sample.is_clean, decisions=decided)
    by_id = dict(zip(ids, fitted.relevance_))
    np.testing.assert_array_equal(table["relevance"], [by_id[id] for id in table["id"]])
    words = dict(zip(ids, decided))
    assert table["decision"].tolist() == [words[id] for id in table["id"]]
    labelsieve.write_relevance(tmp_path / "again.parquet", table)
    assert labelsieve.read_relevance(tmp_path / "again.parquet")["decision"].tolist() == table["decision"].tolist()
    trained = labelsieve.train_files(*pools, tmp_path / "r.parquet", tmp_path / "m.safetensors", device="cpu")
    assert trained["decisions"]["n_reject"] == (decided == "reject").sum()
    with pytest.warns(UserWarning, match="skipping"), pytest.raises(ValueError, match="was made with decisions about all candidates"):
        labelsieve.evaluate_files(relevance=tmp_path / "r.parquet", decisions=tmp_path / "d.csv")
    with pytest.raises(ValueError, match="truth and decisions: expected one of the two"):
        labelsieve.evaluate_files(relevance=tmp_path / "r.parquet", decisions=tmp_path / "d.csv", truth=tmp_path / "d.csv")


def imported(tmp_path, *files):
    """The table that `labelsieve decisions import` makes of files."""
    line = [sys.executable, "-m", "labelsieve", "decisions", "import", *files, "-o", tmp_path / "d.csv"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return labelsieve.read_decisions(tmp_path / "d.csv")


def test_decisions_come_back_from_label_studio(tmp_path):
    later = answer(["None of these"], updated_at="2026-01-02T00:00:00Z", completed_by={"email": "ann@example.org"})
    first = answer(["owl"], updated_at="2026-01-01T00:00:00Z", completed_by=1)
    path = exported(tmp_path / "e.json", [answer(["owl"])], [later, first], [answer(["owl"])])
    table = imported(tmp_path, path)
    found = sorted(zip(table["id"], table["class"], table["decision"]))
    assert found == [("a/b.c.jpg", "owl", "accept"), ("d", "black & widow", "reject"), ("d", "owl", "reject")]
    assert "ann@example.org" in table["by"].tolist()


def test_decisions_come_back_from_fiftyone(tmp_path):
    labelsieve.to_fiftyone(TABLE, tmp_path / "f", image="/photos/{id}", missing="keep")
    labels = json.loads((tmp_path / "f" / "labels.json").read_text())["labels"]
    # As `export(dataset_type=FiftyOneDataset)` lays samples out: attributes are fields of their label, people add tags.
    samples = []
    for (key, path), tag in zip(json.loads((tmp_path / "f" / "data.json").read_text()).items(), ["accept", "reject"]):
        of_sample = labels[key] if isinstance(labels[key], list) else [labels[key]]
        documents = [
            {"_cls": "Classification", "tags": [tag], "label": one["label"], "confidence": one["confidence"], **one["attributes"]}
            for one in of_sample
        ]
        field = documents[0] if len(documents) == 1 else {"_cls": "Classifications", "classifications": documents}
        samples.append({"filepath": path, "tags": [], "ground_truth": field})
    (tmp_path / "samples.json").write_text(json.dumps({"samples": samples}))
    table = imported(tmp_path, tmp_path / "samples.json")
    found = sorted(zip(table["id"], table["class"], table["decision"]))
    assert found == [("a/b.c.jpg", "owl", "accept"), ("d", "black & widow", "reject"), ("d", "owl", "reject")]
