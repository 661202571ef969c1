"""Names of methods, modes and rules: typed, and refused with the nearest spelling."""

import subprocess
import sys
import typing

import pytest
from conftest import REPOSITORY

import labelsieve

METHODS = "method: expected auto, gcn, mlp, label-propagation, similarity, linear, beta or mixture, found "


@pytest.mark.parametrize(
    ("given", "ending"),
    [
        ("gnc", "`gnc`\nhint: did you mean `gcn`?"),
        ("GCN", "`GCN`\nhint: did you mean `gcn`?"),
        ("label propagation", "`label propagation`\nhint: did you mean `label-propagation`?"),
        ("similarty", "`similarty`\nhint: did you mean `similarity`?"),
        ("transformer", "`transformer`"),
        (None, "None"),
        (3, "3"),
    ],
)
def test_an_unknown_method_is_refused_with_the_nearest_spelling(sample, given, ending):
    works = [lambda: labelsieve.relevance(sample.X[:2], sample.X[2:], given)]
    for estimator in (labelsieve.Cleaner, labelsieve.PrototypeClassifier, labelsieve.CosineClassifier):
        works.append(lambda made=estimator(method=given): made.fit(sample.X, sample.y, is_clean=sample.is_clean))
    for work in works:
        with pytest.raises(ValueError) as refused:
            work()
        assert str(refused.value) == METHODS + ending


def test_modes_and_rules_are_refused_alike(sample):
    with pytest.raises(ValueError, match="mode: expected .*\nhint: did you mean `distance`?"):
        labelsieve.knn_graph(sample.X, mode="distances")
    with pytest.raises(ValueError, match="rule: expected .*\nhint: did you mean `any-word`?"):
        labelsieve.match(["a cat"], ["cat"], rule="anyword")
    with pytest.raises(ValueError, match="missing: expected raise, skip or keep, found `skp`\nhint: did you mean `skip`?"):
        labelsieve.to_fiftyone({"id": [], "class": [], "relevance": []}, "never", missing="skp")
    assert len(labelsieve.match(["a cat"], ["cat"], rule="any_word")["id"]) == 1


def test_methods_are_a_literal_that_users_can_name():
    methods = ("auto", "gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture")
    assert typing.get_args(labelsieve.Method) == methods


TYPED = """
import labelsieve
labelsieve.relevance([[1.0]], [[1.0]], {method})
labelsieve.Cleaner({method})
labelsieve.PrototypeClassifier(method={method})
labelsieve.CosineClassifier(method={method})
def mine(method: labelsieve.Method) -> None:
    labelsieve.Cleaner(method)
mine({method})
"""


def test_a_misspelt_method_is_an_error_of_types(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    for name, method in [("right", "'label-propagation'"), ("wrong", "'label-propagatoin'")]:
        (tmp_path / f"{name}.py").write_text(TYPED.format(method=method))
    check = lambda name: subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", "--config-file", REPOSITORY / "pyproject.toml", tmp_path / name],
        capture_output=True, text=True, cwd=tmp_path,
    )
    right, wrong = check("right.py"), check("wrong.py")
    assert right.returncode == 0, right.stdout
    assert wrong.stdout.count("Literal['label-propagatoin']") == 5, wrong.stdout
