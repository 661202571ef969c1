"""What other tools read, loaded with those tools where they are installed."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import labelsieve

TABLE = {
    "id": ["a/b.c.jpg", "d", "d"],
    "class": ["owl", "owl", "black & widow"],
    "relevance": [0.25, 1.0, 0.5],
    "is_clean": [False, True, False],
}


def test_label_studio_accepts_the_tasks(tmp_path):
    interface = labelsieve.to_label_studio(TABLE, tmp_path / "tasks.json", image="https://example.org/{id}")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert [task["predictions"][0]["score"] for task in tasks] == [0.25, 1.0, 0.5]
    assert tasks[0]["data"]["image"] == "https://example.org/a/b.c.jpg"
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    loaded = sdk.LabelInterface(interface)
    loaded.validate()
    for task in tasks:
        assert loaded.validate_task({"data": task["data"]})
        assert loaded.validate_prediction(task["predictions"][0], return_errors=True) == []
    tasks[0]["predictions"][0]["result"][0]["value"]["choices"] = ["no such class"]
    assert loaded.validate_prediction(tasks[0]["predictions"][0], return_errors=True) != [], "or it checks nothing"


def test_cleanlab_finds_issues_with_what_it_is_given(tmp_path, sample):
    pytest.importorskip("scipy", reason="scipy is not installed")
    classifier = labelsieve.PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    inputs = labelsieve.to_cleanlab(sample.X, sample.y, classifier, k=8, path=tmp_path / "c.npz")
    with np.load(tmp_path / "c.npz") as saved:
        np.testing.assert_array_equal(saved["labels"], sample.y)
        np.testing.assert_array_equal(saved["knn_indices"], inputs.knn_graph.indices)
    filter = pytest.importorskip("cleanlab.filter", reason="cleanlab is not installed")
    issues = filter.find_label_issues(inputs.labels, inputs.pred_probs)
    assert issues.shape == (len(sample.y),) and issues.any()
    datalab = pytest.importorskip("cleanlab", reason="cleanlab is not installed")
    try:
        lab = datalab.Datalab({"label": inputs.labels}, label_name="label")
    except ImportError as missing:
        pytest.skip(f"Datalab needs more than cleanlab: {missing}")
    lab.find_issues(pred_probs=inputs.pred_probs, knn_graph=inputs.knn_graph, issue_types={"outlier": {}, "near_duplicate": {}})
    scores = lab.get_issues("outlier")["outlier_score"]
    assert len(scores) == len(sample.y) and scores.nunique() > 10


def test_classes_unknown_to_the_classifier_are_refused(sample):
    classifier = labelsieve.PrototypeClassifier().fit(sample.X, sample.y)
    with pytest.raises(ValueError, match="y, row 0: expected a class of the classifier, found 99"):
        labelsieve.to_cleanlab(sample.X, sample.y * 0 + 99, classifier)


#: FiftyOne wants a MongoDB to start. Its importer, which reads the folder, does not use it.
FIFTYONE = """
import json, os, sys
os.environ.update(FIFTYONE_DISABLE_SERVICES="1", FIFTYONE_DO_NOT_TRACK="true")
from fiftyone.utils.data.importers import FiftyOneImageClassificationDatasetImporter as Importer
with Importer(dataset_dir=sys.argv[1], data_path="data.json") as importer:
    assert importer.get_dataset_info()["classes"] == ["black & widow", "owl"]
    found = []
    for path, _, label in importer:
        labels = getattr(label, "classifications", [label])
        found.append([path, [[one.label, one.confidence, one["is_clean"]] for one in labels]])
print(json.dumps(found))
"""


def test_fiftyone_reads_the_folder(tmp_path):
    labelsieve.to_fiftyone(TABLE, tmp_path / "f", image="/photos/{id}")
    if importlib.util.find_spec("fiftyone") is None:
        pytest.skip("fiftyone is not installed")
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FIFTYONE, tmp_path / "f"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["/photos/a/b.c.jpg", [["owl", 0.25, False]]],
        ["/photos/d", [["owl", 1.0, True], ["black & widow", 0.5, False]]],
    ]


def test_tables_of_every_kind_are_taken_and_wrong_ones_refused(tmp_path):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    texts = []
    for table in [TABLE, pandas.DataFrame(TABLE), pyarrow.table(TABLE), labelsieve.Table(TABLE)]:
        labelsieve.to_label_studio(table, tmp_path / "t.json")
        texts.append((tmp_path / "t.json").read_text())
    assert len(set(texts)) == 1
    for table, message in [
        ({"id": ["a"]}, "table: expected a column `class`, found id"),
        ({"id": ["a"], "class": ["b"], "relevance": [1.5]}, "relevance, row 0: expected a number from 0 to 1, found 1.5"),
    ]:
        with pytest.raises(ValueError, match=message):
            labelsieve.to_fiftyone(table, tmp_path)
    with pytest.raises(ValueError, match="image: expected a pattern with {id} in it, found `x`"):
        labelsieve.to_label_studio(TABLE, tmp_path / "t.json", image="x")
    with pytest.raises(TypeError, match="table: expected a data frame"):
        labelsieve.to_label_studio([1], tmp_path / "t.json")
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == [], "nothing unfinished is left behind"
