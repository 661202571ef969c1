"""Files for other tools, loaded with those tools where they are installed."""

import importlib.util
import json
import os
import subprocess
import sys
from xml.etree import ElementTree

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
    choices = [choice.get("value") for choice in ElementTree.fromstring(interface).iter("Choice")]
    assert choices == ["black & widow", "owl", "None of these"], "a person can reject them all"
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    loaded = sdk.LabelInterface(interface)
    loaded.validate()
    for task in tasks:
        assert loaded.validate_task({"data": task["data"]})
        assert loaded.validate_prediction(task["predictions"][0], return_errors=True) == []
    tasks[0]["predictions"][0]["result"][0]["value"]["choices"] = ["None of these"]
    assert loaded.validate_prediction(tasks[0]["predictions"][0], return_errors=True) == []
    tasks[0]["predictions"][0]["result"][0]["value"]["choices"] = ["no such class"]
    assert loaded.validate_prediction(tasks[0]["predictions"][0], return_errors=True) != [], "or it checks nothing"


def answer(choices, **more):
    result = {"from_name": "class", "to_name": "image", "type": "choices", "value": {"choices": choices}}
    return {"result": [result] if choices else [], "was_cancelled": False, **more}


def exported(path, *answers, none_of_these="None of these"):
    """The tasks as Label Studio exports them once people have answered."""
    labelsieve.to_label_studio(TABLE, path, none_of_these=none_of_these)
    tasks = [{"id": number, **task} for number, task in enumerate(json.loads(path.read_text()), 700)]
    for task, given in zip(tasks, answers):
        task["annotations"] = given
    path.write_text(json.dumps(tasks))
    return path


def test_answers_come_back_from_label_studio(tmp_path):
    path = exported(tmp_path / "e.json", [answer(["owl"])], [answer(["None of these"])], [answer(["owl"])])
    table = labelsieve.read_label_studio(path)
    assert table["id"].tolist() == TABLE["id"] and table["class"].tolist() == TABLE["class"]
    assert table["chosen"].tolist() == ["owl", None, "owl"]
    assert table["relevant"].tolist() == [True, False, False]
    path = exported(tmp_path / "e.json", [answer(["keine"])], [], [], none_of_these="keine")
    assert labelsieve.read_label_studio(path, none_of_these="keine")["chosen"].tolist() == [None]


def test_tasks_without_an_agreed_answer_are_left_out(tmp_path):
    disputed = [answer(["owl"]), answer(["None of these"])]
    agreed = [answer(["owl"]), answer(["None of these"], was_cancelled=True), answer(["owl"]), answer([])]
    path = exported(tmp_path / "e.json", disputed, agreed, [])
    with pytest.warns(UserWarning, match="left out 1 tasks on which people disagree"):
        table = labelsieve.read_label_studio(path)
    assert (table["id"].tolist(), table["relevant"].tolist()) == (["d"], [True])


def test_what_is_no_export_of_these_tasks_is_refused(tmp_path):
    path = tmp_path / "e.json"
    for text, message in [
        ("no json", "expected JSON"),
        ('[{"image": "x", "class": "owl", "id": 3}]', "task 0: expected `annotations` and `data`.*\nhint: export as JSON"),
        ('{"detail": "not found"}', "task 0: expected `annotations`"),
        (json.dumps([{"data": {"id": "a", "class": "b"}, "annotations": [answer(["b", "c"])]}]), "expected one choice, found b, c"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            labelsieve.read_label_studio(path)
    clash = {"id": ["a"], "class": ["None of these"], "relevance": [1.0]}
    with pytest.raises(ValueError, match="none_of_these: expected a text that is not a class, found a class: `None of these`"):
        labelsieve.to_label_studio(clash, path)
    labelsieve.to_label_studio(clash, path, none_of_these="Reject")


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
    classifier = labelsieve.PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
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
    labelsieve.to_fiftyone(TABLE, tmp_path / "f", image="/photos/{id}", missing="keep")
    if importlib.util.find_spec("fiftyone") is None:
        pytest.skip("fiftyone is not installed")
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FIFTYONE, tmp_path / "f"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["/photos/a/b.c.jpg", [["owl", 0.25, False]]],
        ["/photos/d", [["owl", 1.0, True], ["black & widow", 0.5, False]]],
    ]


def test_images_that_do_not_exist_are_refused_left_out_or_kept(tmp_path):
    table = {"id": [f"{i}.jpg" for i in range(6)], "class": ["owl"] * 6, "relevance": [0.5] * 6}
    for name in ("1.jpg", "4.jpg"):
        (tmp_path / name).write_bytes(b"")
    image, folder = str(tmp_path / "{id}"), tmp_path / "f"
    with pytest.raises(FileNotFoundError, match="4 of 6 images do not exist: `.*0.jpg`, `.*2.jpg`, `.*3.jpg`, …\nhint: image="):
        labelsieve.to_fiftyone(table, folder, image=image)
    assert not folder.exists(), "refused before anything is written"
    with pytest.warns(UserWarning, match="left out: 4 of 6 images do not exist") as told:
        labelsieve.to_fiftyone(table, folder, image=image, missing="skip")
    assert told[0].filename == __file__
    places = json.loads((folder / "data.json").read_text())
    labels = json.loads((folder / "labels.json").read_text())["labels"]
    assert [os.path.basename(path) for path in places.values()] == ["1.jpg", "4.jpg"]
    assert [label["attributes"]["example"] for label in labels.values()] == ["1.jpg", "4.jpg"]
    labelsieve.to_fiftyone(table, folder, image=image, missing="keep")
    assert len(json.loads((folder / "data.json").read_text())) == 6
    for image in ("https://example.org/{id}", "nowhere/{id}"):
        with pytest.raises(FileNotFoundError, match="6 of 6 images do not exist"):
            labelsieve.to_fiftyone(table, folder, image=image, missing="skip")


def test_tables_of_every_kind_are_taken_and_wrong_ones_refused(tmp_path):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    texts = []
    for table in [TABLE, pandas.DataFrame(TABLE), pyarrow.table(TABLE), labelsieve.Table(TABLE)]:
        labelsieve.to_label_studio(table, tmp_path / "t.json")
        texts.append((tmp_path / "t.json").read_text())
    assert len(set(texts)) == 1
    for table, message in [
        ({"id": ["a"]}, "table: expected a column `class`, found id"),
        ({"id": ["a"], "class": ["b"], "relevance": [1.5]}, r"relevance, row 0: expected a number in \[0, 1\], found 1.5"),
    ]:
        with pytest.raises(ValueError, match=message):
            labelsieve.to_fiftyone(table, tmp_path)
    with pytest.raises(ValueError, match="image: expected a pattern with {id} in it, found `x`"):
        labelsieve.to_label_studio(TABLE, tmp_path / "t.json", image="x")
    with pytest.raises(TypeError, match="table: expected a data frame"):
        labelsieve.to_label_studio([1], tmp_path / "t.json")
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == [], "nothing unfinished is left behind"
