"""`CleanKFold`, and the estimators under scikit-learn's searches, pipelines and clones."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import labelsieve
from labelsieve import Cleaner, CleanKFold, CosineClassifier, PrototypeClassifier

sklearn = pytest.importorskip("sklearn", minversion="1.6", reason="scikit-learn 1.6 is not installed")

from sklearn import config_context  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

routing = pytest.mark.parametrize("routed", [False, True], ids=["without routing", "with routing"])


def test_folds_test_on_clean_rows_and_train_on_the_rest(sample):
    tested = []
    for train, test in CleanKFold(sample.is_clean, n_splits=3).split(sample.X, sample.y):
        assert sample.is_clean[test].all()
        assert sorted([*train, *test]) == list(range(len(sample.y))), "all candidates and the other clean rows"
        assert np.bincount(sample.y[test]).tolist() == [1] * 6, "stratified"
        assert set(sample.y[train][sample.is_clean[train]]) == set(sample.y), "a clean row of every class is left"
        tested.extend(test)
    assert sorted(tested) == np.flatnonzero(sample.is_clean).tolist(), "every clean row once"


def test_classes_of_unequal_size_are_distributed_evenly():
    y = np.repeat(["a", "b", "c"], [2, 7, 13])
    is_clean = np.ones(len(y), bool)
    folds = list(CleanKFold(is_clean, n_splits=5).split(np.zeros((len(y), 1)), y))
    assert sorted(len(test) for _, test in folds) == [4, 4, 4, 5, 5]
    for train, test in folds:
        assert set(y[train]) == {"a", "b", "c"}
        for name, n in [("a", 2), ("b", 7), ("c", 13)]:
            assert n // 5 <= (y[test] == name).sum() <= -(-n // 5)


def test_the_seed_decides_the_folds(sample):
    tests = lambda seed: [test.tolist() for _, test in CleanKFold(sample.is_clean, 3, seed).split(sample.X, sample.y)]
    assert tests(0) == tests(0) and tests(0) != tests(1)


@routing
@pytest.mark.parametrize("estimator", [CosineClassifier(epochs=3), PrototypeClassifier()], ids=lambda e: type(e).__name__)
def test_a_search_scores_on_clean_rows(sample, estimator, routed):
    folds = CleanKFold(sample.is_clean, n_splits=3)
    with config_context(enable_metadata_routing=routed):
        if routed:
            estimator = clone(estimator).set_fit_request(is_clean=True)
        search = GridSearchCV(estimator, {"lam": [0.01, 1.0]}, cv=folds).fit(sample.X, sample.y, is_clean=sample.is_clean)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and search.best_score_ == scores.max()
    by_hand = []
    for train, test in folds.split(sample.X, sample.y):
        fitted = clone(estimator).set_params(lam=1.0).fit(sample.X[train], sample.y[train], is_clean=sample.is_clean[train])
        by_hand.append((fitted.predict(sample.X[test]) == sample.y[test]).mean())
    assert scores[1] == pytest.approx(np.mean(by_hand))


def test_with_routing_the_search_hands_the_flags_to_the_splitter(sample):
    with config_context(enable_metadata_routing=True):
        estimator = PrototypeClassifier().set_fit_request(is_clean=True)
        search = GridSearchCV(estimator, {"lam": [0.01, 1.0]}, cv=CleanKFold(n_splits=3))
        search.fit(sample.X, sample.y, is_clean=sample.is_clean)
        given = GridSearchCV(estimator, {"lam": [0.01, 1.0]}, cv=CleanKFold(sample.is_clean, n_splits=3))
        given.fit(sample.X, sample.y, is_clean=sample.is_clean)
        scores = cross_val_score(estimator, sample.X, sample.y, params={"is_clean": sample.is_clean}, cv=CleanKFold(n_splits=3))
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], given.cv_results_["mean_test_score"])
    assert np.isfinite(scores).all() and len(scores) == 3


@routing
def test_pipelines_pass_the_flags_on(sample, routed):
    folds = CleanKFold(sample.is_clean, n_splits=3)
    with config_context(enable_metadata_routing=routed):
        last = PrototypeClassifier().set_fit_request(is_clean=True) if routed else PrototypeClassifier()
        model = make_pipeline(StandardScaler(), last)
        name = "is_clean" if routed else "prototypeclassifier__is_clean"
        search = GridSearchCV(model, {"prototypeclassifier__lam": [0.01, 1.0]}, cv=folds)
        search.fit(sample.X, sample.y, **{name: sample.is_clean})
        scores = cross_val_score(model, sample.X, sample.y, params={name: sample.is_clean}, cv=folds)
        forgotten = clone(search)
        with pytest.raises(ValueError, match=r"All the 6 fits failed(.|\n)*PrototypeClassifier.fit needs is_clean"):
            forgotten.fit(sample.X, sample.y)
    assert np.isfinite(scores).all() and np.isfinite(search.cv_results_["mean_test_score"]).all()
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(sample.X_test), search.predict(sample.X_test))


LOST = """
import numpy as np, warnings
import labelsieve
from sklearn.model_selection import GridSearchCV, cross_val_score
data = labelsieve.demo_data(n_classes=4, n_clean=2, largest_pool={pool})
model = labelsieve.PrototypeClassifier()
order = np.argsort(~data.is_clean, kind="stable")  # clean rows first: the first fold takes those of most classes
X, y, is_clean = data.X[order], data.y[order], data.is_clean[order]
{setting}
search = GridSearchCV(model, {{"lam": [0.01, 1.0]}}, n_jobs={jobs})
for work in (lambda: search.fit(X, y, is_clean=is_clean),
             lambda: cross_val_score(model, X, y, params={{"is_clean": is_clean}})):
    try:
        found = work()
    except Exception as error:
        print(type(error).__name__, "CleanKFold" in str(error), hasattr(search, "best_params_"))
    else:
        print("finished")
"""


def lost(setting="", jobs=1, pool=60):
    code = LOST.format(setting=setting, jobs=jobs, pool=pool)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(("jobs", "pool"), [(1, 60), (2, 60), (1, 300)], ids=["three classes", "in parallel", "all classes"])
def test_folds_that_lose_classes_end_a_search_instead_of_scoring_nan(jobs, pool):
    assert lost(jobs=jobs, pool=pool).stdout == "FitFailedWarning True False\n" * 2


def test_who_wants_nan_can_have_it():
    setting = "from sklearn.exceptions import FitFailedWarning; warnings.simplefilter('always', FitFailedWarning)"
    done = lost(setting)
    assert done.stdout == "finished\n" * 2 and "but no clean example" in done.stderr


def test_error_score_raise_names_the_class(sample):
    order = np.argsort(~sample.is_clean, kind="stable")
    with pytest.raises(ValueError, match=r"\nhint: (.|\n)*cv=labelsieve.CleanKFold\(is_clean\)"):
        cross_validate(
            PrototypeClassifier(), sample.X[order], sample.y[order], params={"is_clean": sample.is_clean[order]}, error_score="raise"
        )


def test_a_single_clean_row_cannot_be_tested_and_learned_from(sample):
    first = np.isin(np.arange(len(sample.y)), [np.flatnonzero(sample.is_clean & (sample.y == c))[0] for c in (1, 4)])
    is_clean = (sample.is_clean & ~np.isin(sample.y, (1, 4))) | first
    with pytest.raises(ValueError, match="2 of 6 classes have a single clean example.*: `1`, `4`\nhint: verify one more"):
        GridSearchCV(PrototypeClassifier(), {}, cv=CleanKFold(is_clean)).fit(sample.X, sample.y, is_clean=is_clean)
    with pytest.raises(ValueError, match="class `3` has .* but no clean example"):
        next(CleanKFold(sample.is_clean & (sample.y != 3)).split(sample.X, sample.y))


def test_bad_settings_of_the_splitter_are_refused_by_name(sample):
    with pytest.raises(ValueError, match=r"is_clean: .*found 5\nhint: CleanKFold\(is_clean, n_splits=5\)"):
        CleanKFold(5)
    for wrong in (1, 2.5, "3", True, None):
        with pytest.raises(ValueError, match="n_splits: expected an integer >= 2"):
            CleanKFold(sample.is_clean, wrong)
    for arguments, message in [
        ((sample.X, sample.y), r"CleanKFold needs is_clean: .*\nhint: CleanKFold\(is_clean\)"),
        ((sample.X,), "CleanKFold.split needs y"),
    ]:
        with pytest.raises(ValueError, match=message):
            next(CleanKFold().split(*arguments))
    with pytest.raises(ValueError, match="n_splits: expected at most the number of clean rows, 18, found 19"):
        next(CleanKFold(sample.is_clean, 19).split(sample.X, sample.y))
    with pytest.raises(ValueError, match="is_clean: expected one true or false per row"):
        next(CleanKFold(sample.is_clean[:-1]).split(sample.X, sample.y))
    with pytest.raises(ValueError, match="y: expected one class per row"):
        next(CleanKFold(sample.is_clean).split(sample.X[:-1], sample.y))


def test_splitters_are_copied_and_shown_as_scikit_learn_shows_them(sample):
    folds = CleanKFold(sample.is_clean, n_splits=4)
    assert repr(folds) == "CleanKFold(is_clean, n_splits=4, random_state=0)"
    assert repr(CleanKFold()) == "CleanKFold(n_splits=5, random_state=0)"
    search = clone(GridSearchCV(PrototypeClassifier(), {"lam": [1.0]}, cv=folds))
    assert search.cv.get_n_splits() == copy.deepcopy(folds).get_n_splits(sample.X, sample.y) == 4
    np.testing.assert_array_equal(search.cv.is_clean, sample.is_clean)


@pytest.mark.parametrize("estimator", [Cleaner("mlp"), PrototypeClassifier(scale=3.0), CosineClassifier(epochs=2)], ids=repr)
def test_clones_keep_parameters_and_requests(estimator):
    with config_context(enable_metadata_routing=True):
        copied = clone(estimator.set_fit_request(is_clean=True))
        assert copied.get_params() == estimator.get_params()
        assert copied.get_metadata_routing().fit.requests["is_clean"] is True
        estimator.set_fit_request(is_clean=None)


WITHOUT_SKLEARN = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
import labelsieve
data = labelsieve.demo_data(n_classes=4, n_clean=3)
model = labelsieve.PrototypeClassifier()
for train, test in labelsieve.CleanKFold(data.is_clean, n_splits=3).split(data.X, data.y):
    model.fit(data.X[train], data.y[train], is_clean=data.is_clean[train])
    print(model.score(data.X[test], data.y[test]) > 0.5)
"""


def test_the_splitter_needs_numpy_only():
    done = subprocess.run([sys.executable, "-c", WITHOUT_SKLEARN], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("True\n" * 3, 0), done.stderr
