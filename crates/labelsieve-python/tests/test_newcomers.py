"""Mistakes of a first day, and the messages they get."""

import pydoc

import numpy as np
import pytest

import labelsieve
from labelsieve import Cleaner, PrototypeClassifier, relevance

ROWS = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
Y, IS_CLEAN = np.arange(12) % 3, np.arange(12) < 6


def refused(work):
    """The message of the error."""
    with pytest.raises((ValueError, TypeError)) as error:
        work()
    return str(error.value)


def each(X):
    """The same rows given to a function, to `fit` and to `predict`."""
    fitted = PrototypeClassifier().fit(ROWS, Y, is_clean=IS_CLEAN)
    return [
        lambda: relevance(ROWS, X),
        lambda: Cleaner().fit(X, Y[: len(X)], is_clean=IS_CLEAN[: len(X)]),
        lambda: fitted.predict(X),
    ]


def test_text_columns_of_a_data_frame_are_named():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(ROWS, columns=list("abcd")).assign(title="an owl", file="x.jpg")
    for work in each(frame):
        message = refused(work)
        assert "expected columns of numbers, found e.g. 'an owl' in `title`, `file`\nhint: use " in message
        assert ".drop(columns=['title', 'file'])" in message
    vectors = pandas.DataFrame({"embedding": list(ROWS)})
    for work in each(vectors):
        assert "found vectors in `embedding`\nhint: use " in refused(work)
    fitted = Cleaner().fit(vectors["embedding"], Y, is_clean=IS_CLEAN)
    np.testing.assert_array_equal(fitted.relevance_, Cleaner().fit(ROWS, Y, is_clean=IS_CLEAN).relevance_)


def test_numbers_of_several_types_are_numbers():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    expected = relevance(ROWS, ROWS, "similarity")
    mixed = pandas.DataFrame(ROWS.astype(object))
    np.testing.assert_array_equal(relevance(ROWS, mixed, "similarity"), expected)
    np.testing.assert_array_equal(relevance(ROWS, ROWS.astype(object), "similarity"), expected)
    nullable = pandas.DataFrame(ROWS).astype("Float32")
    np.testing.assert_array_equal(relevance(ROWS, nullable, "similarity"), expected)
    twice = pandas.DataFrame(ROWS, columns=["a", "a", "b", "b"])
    np.testing.assert_array_equal(relevance(ROWS, twice, "similarity"), expected)


def test_what_is_no_number_is_refused_with_its_place():
    wrong = ROWS.astype(object)
    wrong[3, 2] = "n/a"
    assert refused(lambda: relevance(ROWS, wrong)) == "noisy, row 3, column 2: expected a number, found 'n/a'"
    for work in each(ROWS.astype(str)):
        assert "expected numbers, found values of type <U" in refused(work)
    assert "expected numbers, found values of type complex" in refused(lambda: relevance(ROWS, ROWS.astype(complex)))


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_nan_and_infinity_are_refused_with_their_place_everywhere(value, name):
    spoilt = ROWS.copy()
    spoilt[5, 3] = value
    for work in each(spoilt):
        assert f"feature row 5, column 3: expected a finite number, found {name}" in refused(work)


def test_shapes_are_explained():
    assert refused(lambda: relevance(ROWS, ROWS[0])).endswith("hint: Reshape your data: a single example is noisy.reshape(1, -1)")
    assert refused(lambda: relevance(ROWS, [])).endswith("found 1\nhint: noisy is empty")
    cube = ROWS.reshape(12, 2, 2)
    assert refused(lambda: relevance(ROWS, cube)).endswith("found 3\nhint: one row per example: noisy.reshape(len(noisy), -1)")
    for work in each(ROWS[:0])[1:]:
        assert "0 sample" in refused(work) or "at least 1 row" in refused(work)
    assert "Reshape your data" in refused(lambda: Cleaner().fit(ROWS[0], Y, is_clean=IS_CLEAN))


def test_tensors_elsewhere_and_with_gradients():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    there = torch.empty(12, 4, device="meta")  # as good as a GPU: not the memory of this process
    for work in each(there):
        assert "expected a tensor on the CPU, found one on meta\nhint: use " in refused(work)
    tensor = torch.tensor(ROWS, requires_grad=True)
    fitted = Cleaner().fit(tensor, torch.tensor(Y), is_clean=torch.tensor(IS_CLEAN))
    np.testing.assert_array_equal(fitted.relevance_, Cleaner().fit(ROWS, Y, is_clean=IS_CLEAN).relevance_)
    message = refused(lambda: Cleaner().fit(tensor, Y, is_clean=torch.empty(12, device="meta")))
    assert message.startswith("is_clean: expected a tensor on the CPU") and message.endswith("hint: use is_clean.cpu()")


def test_lists_do_for_everything():
    fitted = Cleaner().fit(ROWS.tolist(), Y.tolist(), is_clean=IS_CLEAN.tolist())
    np.testing.assert_array_equal(fitted.relevance_, Cleaner().fit(ROWS, Y, is_clean=IS_CLEAN).relevance_)


def test_a_path_is_not_the_rows_in_it():
    for work in [lambda: relevance(ROWS, "noisy.npy"), lambda: Cleaner().fit("X.npy", Y, is_clean=IS_CLEAN)]:
        message = refused(work)
        assert ": expected rows of numbers, found str '" in message
        assert message.endswith("hint: labelsieve.read_features reads files")
    assert refused(lambda: relevance(None, ROWS)) == "clean: expected rows of numbers, found None"


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: Cleaner(device=None), "device: expected auto, cpu, cuda or cuda:0, cuda:1, …, found None"),
        (lambda: Cleaner(settings="fast"), "settings: expected a mapping of names to values, found 'fast'"),
        (lambda: Cleaner(settings={"training": object}), "settings: expected numbers, strings and mappings of them: "),
        (lambda: labelsieve.CosineClassifier(epochs=2.5), "epochs: expected a positive integer, found 2.5"),
        (lambda: labelsieve.CosineClassifier(batch_size="9"), "batch_size: expected a positive integer, found '9'"),
        (lambda: labelsieve.CosineClassifier(momentum="x"), "momentum: expected a number, found 'x'"),
    ],
)
def test_settings_are_refused_by_their_names(work, message):
    assert refused(lambda: work().fit(ROWS, Y, is_clean=IS_CLEAN)).startswith(message)


def test_arguments_of_functions_are_refused_by_their_names():
    for work, message in [
        (lambda: labelsieve.demo_data(n_classes="a"), "n_classes: expected a positive integer, found 'a'"),
        (lambda: labelsieve.demo_data(largest_pool=-1), "largest_pool: expected a non-negative integer, found -1"),
        (lambda: labelsieve.demo_data(noise_ratio="a"), "noise_ratio: expected a number, found 'a'"),
        (lambda: labelsieve.match(["a"], 3), "classes: expected names, a mapping or a class file, found int"),
        (lambda: labelsieve.describe_device(0), "device: expected auto, cpu, cuda"),
        (lambda: labelsieve.to_cleanlab(ROWS, Y, PrototypeClassifier()), "classifier: expected a fitted classifier"),
        (
            lambda: PrototypeClassifier().fit(ROWS, Y, is_clean=IS_CLEAN, relevance=["a"] * 12),
            "relevance: expected numbers, found values of type <U1",
        ),
    ]:
        assert refused(work).startswith(message)


def test_tables_lose_no_rows_and_take_no_text_for_true(tmp_path):
    right = {"id": ["a", "b"], "class": ["owl", "owl"], "relevance": [1.0, 0.5], "is_clean": [True, False]}
    for column, values, message in [
        ("class", ["owl"], "columns: expected equal lengths, found {"),
        ("class", ["owl", None], "class, row 1: expected a name, found None"),
        ("relevance", [1.0, None], "relevance, row 1: expected a number in [0, 1], found None"),
        ("relevance", [1.0, "high"], "relevance, row 1: expected a number in [0, 1], found 'high'"),
        ("is_clean", ["True", "False"], "is_clean, row 0: expected true or false (or 1 and 0), found 'True'"),
    ]:
        wrong = {**right, column: values}
        assert refused(lambda: labelsieve.write_relevance(tmp_path / "r.parquet", wrong)).startswith(message)
        assert refused(lambda: labelsieve.to_fiftyone(wrong, tmp_path / "f", missing="keep")).startswith(message)
        if column != "is_clean":
            assert refused(lambda: labelsieve.to_label_studio(wrong, tmp_path / "t.json")).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_help_shows_every_public_name():
    text = pydoc.plain(pydoc.render_doc(labelsieve))
    for name in set(labelsieve.__all__) - {"__version__"}:
        assert name in text, name
    for name in set(labelsieve.__all__) - {"__version__", "Method"}:
        assert pydoc.getdoc(getattr(labelsieve, name)), name
