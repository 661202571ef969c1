"""`is_clean`: forgotten, wrong in every way that happens, and right in every form that people have it in."""

import warnings

import numpy as np
import pytest

from labelsieve import Cleaner, CosineClassifier, PrototypeClassifier

ESTIMATORS = [Cleaner, PrototypeClassifier, CosineClassifier]


def small():
    """Twelve rows of three classes, two of each clean."""
    X = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
    return X, np.arange(12) % 3, np.arange(12) < 6


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_forgotten_it_is_asked_for(estimator):
    X, y, _ = small()
    message = rf"{estimator.__name__}.fit needs is_clean: one true or false per row(.|\n)*hint: fit\(X, y, is_clean=mask\)"
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y)


def test_known_relevance_does_not_replace_it():
    """Without it all rows would be clean, and the relevance of none would be read."""
    X, y, _ = small()
    with pytest.raises(ValueError, match="needs is_clean"):
        PrototypeClassifier().fit(X, y, relevance=np.full(len(y), 0.5))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_true_alone_says_that_all_are_verified(estimator):
    X, y, _ = small()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = estimator().fit(X, y, is_clean=True)
    assert fitted.is_clean_.all() and (fitted.relevance_ == 1).all()


def test_true_in_every_row_is_taken_with_a_warning():
    X, y, _ = small()
    with pytest.warns(UserWarning, match="is_clean is true in all 12 rows: there are no candidates") as told:
        Cleaner().fit(X, y, is_clean=np.ones(12, bool))
    assert told[0].filename == __file__


@pytest.mark.parametrize("flags", [False, np.zeros(12, bool)], ids=["alone", "in every row"])
def test_false_everywhere_is_refused(flags):
    X, y, _ = small()
    with pytest.raises(ValueError, match="found none in 12 rows\nhint: true means verified; are the flags inverted."):
        Cleaner().fit(X, y, is_clean=flags)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (np.arange(5), r"12 in all, found 5\nhint: are these row numbers\?"),
        (np.arange(12), r"row 2: expected true or false \(or 1 and 0\), found 2\nhint: are these row numbers\?"),
        ([0, 3, 7], r"hint: are these row numbers\? mask = np.zeros\(len\(X\), bool\); mask\[rows\] = True"),
        (np.ones(11, bool), "12 in all, found 11$"),
        (np.ones((12, 1), bool), r"found an array of shape \(12, 1\)\nhint: pass one column"),
        (np.full(12, "True"), "is_clean, row 0: expected true or false .*found 'True'\nhint: compare texts"),
        (np.linspace(0, 1, 12), r"is_clean, row 1: expected true or false \(or 1 and 0\), found 0.0909"),
        ([True] * 11 + [None], r"is_clean, row 11: expected true or false .* found None"),
        (np.array([1.0] * 11 + [np.nan]), "is_clean, row 11: expected true or false .* found nan"),
        (7, "found 7$"),
        ("is_clean", "found 'is_clean'"),
    ],
)
def test_what_it_is_not_is_refused_with_the_way_out(flags, message):
    X, y, _ = small()
    with pytest.raises(ValueError, match=message):
        Cleaner().fit(X, y, is_clean=flags)


def test_missing_flags_of_a_data_frame_are_refused_by_row():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y, is_clean = small()
    flags = pandas.Series(is_clean, dtype="boolean")
    flags[4] = pandas.NA
    with pytest.raises(ValueError, match="is_clean, row 4: expected true or false .* found <NA>"):
        Cleaner().fit(X, y, is_clean=flags)


@pytest.mark.parametrize("form", ["list", "int", "uint8", "float", "object", "boolean", "Int64", "series", "arrow", "torch"])
def test_every_form_of_flags_gives_the_same(form):
    X, y, is_clean = small()
    flags = is_clean
    if form == "list":
        flags = is_clean.tolist()
    elif form in ("int", "uint8", "float", "object"):
        flags = is_clean.astype(form)
    elif form in ("boolean", "Int64", "series"):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        flags = pandas.Series(is_clean, index=np.arange(12)[::-1], dtype=None if form == "series" else form)
    elif form == "arrow":
        flags = pytest.importorskip("pyarrow", reason="pyarrow is not installed").array(is_clean)
    elif form == "torch":
        flags = pytest.importorskip("torch", reason="torch is not installed").tensor(is_clean)
    fitted = Cleaner().fit(X, y, is_clean=flags)
    np.testing.assert_array_equal(fitted.is_clean_, is_clean)
    assert fitted.is_clean_.dtype == bool


def test_classes_without_a_clean_row_are_named():
    X, y, is_clean = small()
    with pytest.raises(ValueError, match="class `1` has 4 candidates but no clean example\nhint: set is_clean"):
        Cleaner().fit(X, y, is_clean=is_clean & (y != 1))
    many = np.array([f"c{i:02}" for i in range(12)])
    with pytest.raises(ValueError, match="10 of 12 classes .*: `c02`, `c03`, `c04`, `c05`, `c06` and 5 more"):
        Cleaner().fit(X, many, is_clean=np.arange(12) < 2)
