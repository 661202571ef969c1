"""Cleaner and classifiers: scikit-learn's contract, and the numbers behind it."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import labelsieve
from labelsieve import Cleaner, CosineClassifier, DiscriminantClassifier, PrototypeClassifier, relevance

sklearn = pytest.importorskip("sklearn", minversion="1.6", reason="scikit-learn 1.6 is not installed")

#: What `check_estimator` asks for and these estimators do not do, with the reason: nothing so far.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "Cleaner": {},
    "PrototypeClassifier": {},
    "CosineClassifier": {},
    "DiscriminantClassifier": {},
}


class VerifiedCleaner(Cleaner):
    """`check_estimator` knows of no arguments but X and y; this says what it leaves out, that all labels are verified."""

    def fit(self, X, y, is_clean=True):
        return super().fit(X, y, is_clean)


class VerifiedPrototypeClassifier(PrototypeClassifier):
    def fit(self, X, y, is_clean=True, relevance=None):
        return super().fit(X, y, is_clean, relevance)


class VerifiedCosineClassifier(CosineClassifier):
    def fit(self, X, y, is_clean=True, relevance=None):
        return super().fit(X, y, is_clean, relevance)


class VerifiedDiscriminantClassifier(DiscriminantClassifier):
    def fit(self, X, y, is_clean=True, relevance=None):
        return super().fit(X, y, is_clean, relevance)


@pytest.mark.parametrize(
    "estimator",
    [
        VerifiedCleaner(),
        VerifiedPrototypeClassifier(),
        VerifiedCosineClassifier(),
        VerifiedDiscriminantClassifier(),
    ],
    ids=repr,
)
def test_check_estimator_passes_but_for_the_exceptions(estimator):
    from sklearn.utils.estimator_checks import check_estimator

    name = type(estimator).__name__.removeprefix("Verified")
    results = check_estimator(estimator, expected_failed_checks=EXCEPTIONS[name], on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"])[:300] for r in results if r["status"] == "failed"}
    assert failed == {}
    stale = set(EXCEPTIONS[name]) - {r["check_name"] for r in results if r["status"] == "xfail"}
    assert not stale, "these pass by now"
    assert len(results) > 30


def test_relevance_is_that_of_each_class_alone(sample):
    """A class's numbers depend on the seed and its name, not on its company."""
    cleaner = Cleaner("gcn").fit(sample.X, sample.y, is_clean=sample.is_clean)
    assert (cleaner.relevance_[sample.is_clean] == 1).all()
    some = sample.y != 2
    fewer = Cleaner("gcn").fit(sample.X[some], sample.y[some], is_clean=sample.is_clean[some])
    np.testing.assert_array_equal(cleaner.relevance_[some], fewer.relevance_)
    one = sample.y == 4
    alone = relevance(sample.X[one & sample.is_clean], sample.X[one & ~sample.is_clean], "label-propagation")
    together = Cleaner("label-propagation").fit(sample.X, sample.y, is_clean=sample.is_clean)
    np.testing.assert_array_equal(together.relevance_[one & ~sample.is_clean], alone)


def test_the_command_line_gives_the_same_numbers(sample, tmp_path):
    for part, mask in [("clean", sample.is_clean), ("noisy", ~sample.is_clean)]:
        np.savez(tmp_path / f"{part}.npz", features=sample.X[mask], labels=sample.y[mask])
    command = ["score", "--clean", "clean.npz", "--pool", "noisy.npz", "--seed", "5", "-o", "r.parquet"]
    subprocess.run([sys.executable, "-m", "labelsieve", *command], cwd=tmp_path, check=True, capture_output=True)
    table = labelsieve.read_relevance(tmp_path / "r.parquet")
    theirs = {(c, i): r for c, i, r, k in zip(*(table[n] for n in ("class", "id", "relevance", "is_clean"))) if not k}
    ours = Cleaner(random_state=5).fit(sample.X, sample.y, is_clean=sample.is_clean)
    noisy = np.flatnonzero(~sample.is_clean)
    assert len(theirs) == len(noisy)
    for position, row in enumerate(noisy):
        assert ours.relevance_[row] == theirs[str(sample.y[row]), str(position)]


def test_probabilities_come_from_methods_that_know_them(sample):
    cleaner = Cleaner("auto").fit(sample.X, sample.y, is_clean=sample.is_clean)
    assert cleaner.probability_.dtype == np.float32 and cleaner.probability_.shape == sample.y.shape
    assert (cleaner.probability_[sample.is_clean] == 1).all()
    assert ((cleaner.probability_ >= 0) & (cleaner.probability_ <= 1)).all()
    columns = list(cleaner.to_table())
    assert columns[2:4] == ["relevance", "probability"]
    cleaner.set_params(method="similarity").fit(sample.X, sample.y, is_clean=sample.is_clean)
    assert not hasattr(cleaner, "probability_") and "probability" not in cleaner.to_table()


def test_copies_of_clean_examples_count_once(sample):
    first = int(np.flatnonzero(sample.is_clean)[1])  # the second of its class
    rows = np.concatenate([np.arange(len(sample.y)), [first, first]])
    X, y = np.array(sample.X[rows]), sample.y[rows]
    X[-1] *= 2  # of the same direction
    is_clean = np.append(sample.is_clean, [False, False])
    alone = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    with pytest.warns(UserWarning, match="^2 candidates are also clean examples of their class") as seen:
        fitted = PrototypeClassifier().fit(X, y, is_clean=is_clean)
    assert [warning.filename for warning in seen] == [__file__]
    for name in ("relevance_", "best_clean_", "best_clean_similarity_", "reciprocal_neighbours_"):
        np.testing.assert_array_equal(getattr(fitted, name)[:-2], getattr(alone, name))
    assert (fitted.relevance_[-2:] == 1).all() and (fitted.best_clean_[-2:] == first).all()
    assert (fitted.best_clean_similarity_[-2:] == 1).all() and (fitted.reciprocal_neighbours_[-2:] == -1).all()
    assert (fitted.sample_weight_[-2:] == 0).all() and fitted.sample_weight_.mean() == pytest.approx(1)
    np.testing.assert_array_equal(fitted.coef_, alone.coef_)
    given = PrototypeClassifier().fit(X, y, is_clean=is_clean, relevance=fitted.relevance_)
    np.testing.assert_array_equal(given.coef_, alone.coef_)
    with pytest.warns(UserWarning, match="^1 candidate is also a clean example of its class") as seen:
        Cleaner("beta").fit(X[:-1], y[:-1], is_clean=is_clean[:-1])
    assert [warning.filename for warning in seen] == [__file__]


def test_copies_under_another_class_are_candidates_like_any_other(sample, recwarn):
    first = int(np.flatnonzero(sample.is_clean)[0])
    other = next(name for name in sample.y if name != sample.y[first])
    X, y = np.append(sample.X, sample.X[[first]], axis=0), np.append(sample.y, other)
    fitted = Cleaner().fit(X, y, is_clean=np.append(sample.is_clean, False))
    assert fitted.relevance_[-1] < 1 and fitted.sample_weight_[-1] > 0 and not recwarn.list


def test_prototypes_are_weighted_means(sample):
    fitted = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    for c in fitted.classes_:
        rows = sample.y == c
        mean = fitted.relevance_[rows].astype(np.float64) @ sample.X[rows]
        np.testing.assert_allclose(fitted.coef_[c], mean / np.linalg.norm(mean), atol=1e-6)
    np.testing.assert_allclose(fitted.decision_function(sample.X_test), sample.X_test @ fitted.coef_.T, atol=1e-6)


def test_prototypes_agree_with_the_golden_file(golden):
    case = golden("prototype")
    rows, k = np.array(case["features"], np.float32), case["n_clean"]
    is_clean = np.arange(len(rows)) < k
    given = np.array(case["relevance"])
    assert (given[:k] == 1).all()
    fitted = PrototypeClassifier().fit(rows, np.zeros(len(rows), int), is_clean=is_clean, relevance=given)
    np.testing.assert_allclose(fitted.coef_[0], case["prototype_f64"], atol=1e-6)


def test_cosine_training_follows_its_loss_in_pytorch(sample):
    """After training, the gradient of eq. (6) by autograd is far smaller than at the prototypes it started from."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    start = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    fitted = CosineClassifier(epochs=300).fit(sample.X, sample.y, is_clean=sample.is_clean)
    np.testing.assert_array_equal(start.relevance_, fitted.relevance_)

    def loss(coef):
        weights = torch.tensor(coef, requires_grad=True)
        unit = torch.nn.functional.normalize(weights)
        logits = 10 * torch.tensor(sample.X) @ unit.T
        each = torch.nn.functional.cross_entropy(logits, torch.tensor(sample.y), reduction="none")
        total = (each * torch.tensor(fitted.sample_weight_)).mean()
        total.backward()
        return float(total.detach()), float(weights.grad.norm())

    (before, steep), (after, flat) = loss(start.coef_), loss(fitted.coef_)
    assert after < before and flat < 0.3 * steep


def test_sample_weights_balance_the_classes(sample):
    fitted = Cleaner().fit(sample.X, sample.y, is_clean=sample.is_clean)
    weights = fitted.sample_weight_
    totals = [weights[sample.y == c].sum() for c in fitted.classes_]
    np.testing.assert_allclose(totals, len(weights) / len(totals))
    ratio = weights[sample.y == 1] / fitted.relevance_[sample.y == 1]
    np.testing.assert_allclose(ratio, ratio[0])
    from sklearn.linear_model import LogisticRegression

    theirs = LogisticRegression().fit(sample.X, sample.y, sample_weight=weights)
    trusting = LogisticRegression().fit(sample.X, sample.y)
    assert theirs.score(sample.X_test, sample.y_test) > trusting.score(sample.X_test, sample.y_test)


def test_cleaning_helps_and_probabilities_follow_the_scale(sample):
    cleaned = CosineClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    trusting = CosineClassifier(method="beta").fit(sample.X, sample.y, is_clean=sample.is_clean)
    assert cleaned.score(sample.X_test, sample.y_test) > trusting.score(sample.X_test, sample.y_test)
    probabilities = cleaned.predict_proba(sample.X_test)
    powers = np.exp(10 * cleaned.decision_function(sample.X_test))
    np.testing.assert_allclose(probabilities, powers / powers.sum(axis=1, keepdims=True), rtol=1e-9)
    assert (cleaned.classes_[probabilities.argmax(axis=1)] == cleaned.predict(sample.X_test)).all()


def test_a_discriminant_is_scikit_learns_where_all_examples_are_clean(sample):
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    # As many of each class: scikit-learn weighs classes by their size, this one alike.
    least = min(np.bincount(sample.y_test))
    rows = np.concatenate([np.flatnonzero(sample.y_test == c)[:least] for c in np.unique(sample.y_test)])
    X, y = labelsieve.normalize(sample.X_test[rows]), sample.y_test[rows]
    ours = DiscriminantClassifier(shrinkage=0.3).fit(X, y, is_clean=True)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3).fit(X, y)
    probabilities = theirs.predict_proba(sample.X)
    assert ours.shrinkage_ == 0.3
    scores = ours.decision_function(sample.X)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), probabilities, atol=1e-3)


def test_a_discriminant_knows_how_sure_it_is_and_what_belongs_to_no_class(sample, tmp_path):
    fitted = DiscriminantClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    prototypes = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    reached = fitted.score(sample.X_test, sample.y_test)
    assert reached >= prototypes.score(sample.X_test, sample.y_test) - 0.02
    probabilities = fitted.predict_proba(sample.X_test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert abs(probabilities.max(axis=1).mean() - reached) < 0.15
    strangers = np.random.default_rng(0).normal(size=(200, sample.X.shape[1])).astype(np.float32)
    assert fitted.typicality(strangers).mean() < fitted.typicality(sample.X_test).mean() - 0.1

    copy = pickle.loads(pickle.dumps(fitted))
    assert (copy.predict(sample.X_test) == fitted.predict(sample.X_test)).all()
    np.testing.assert_allclose(copy.predict_proba(sample.X_test), probabilities, atol=1e-4)
    path = tmp_path / "m.safetensors"
    fitted.save(path)
    read = labelsieve.read_classifier(path)
    assert (read.predict(sample.X_test) == fitted.predict(sample.X_test).astype(str)).all()
    np.testing.assert_allclose(read.predict_proba(sample.X_test), probabilities, atol=1e-4)
    np.testing.assert_allclose(read.typicality(sample.X_test), copy.typicality(sample.X_test))
    prototypes.save(path)
    with pytest.raises(ValueError, match="expected a discriminant, found a classifier by cosine"):
        labelsieve.read_classifier(path).typicality(sample.X_test)
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        DiscriminantClassifier(shrinkage=0).fit(sample.X, sample.y, is_clean=sample.is_clean)


@pytest.mark.parametrize("kind", ["text", "object", "arrow", "categorical"])
def test_labels_may_be_texts_of_any_kind(sample, kind):
    names = np.array(["owl", "black widow", "čáp", "jaguar", "", "42"])[sample.y]
    if kind == "object":
        names = names.astype(object)
    elif kind == "arrow":
        names = pytest.importorskip("pyarrow").array(names)
    elif kind == "categorical":
        names = pytest.importorskip("pandas").Series(names, dtype="category")
    fitted = PrototypeClassifier().fit(sample.X, names, is_clean=sample.is_clean)
    assert sorted(fitted.classes_) == sorted(["owl", "black widow", "čáp", "jaguar", "", "42"])
    assert fitted.predict(sample.X_test[:1])[0] == "owl"


def test_data_frames_are_accepted_and_their_columns_remembered(sample):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(sample.X, columns=[f"f{i}" for i in range(sample.X.shape[1])])
    labels = pandas.Series(sample.y)
    fitted = PrototypeClassifier().fit(frame, labels, is_clean=pandas.Series(sample.is_clean))
    assert list(fitted.feature_names_in_[:2]) == ["f0", "f1"]
    plain = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)


def test_it_works_in_pipelines_grids_and_pickles(sample):
    from sklearn import config_context
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    with config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), PrototypeClassifier().set_fit_request(is_clean=True))
        folds = StratifiedKFold(3, shuffle=True, random_state=0).split(sample.X, sample.y * 2 + sample.is_clean)
        search = GridSearchCV(model, {"prototypeclassifier__lam": [0.01, 1.0]}, cv=list(folds))
        search.fit(sample.X, sample.y, is_clean=sample.is_clean)
    assert search.best_score_ > 0.3
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(sample.X_test), search.predict(sample.X_test))


def test_random_states_of_every_kind(sample):
    fit = lambda state: Cleaner(random_state=state).fit(sample.X, sample.y, is_clean=sample.is_clean).relevance_
    np.testing.assert_array_equal(fit(np.random.RandomState(1)), fit(np.random.RandomState(1)))
    np.testing.assert_array_equal(fit(np.random.default_rng(1)), fit(np.random.default_rng(1)))
    np.testing.assert_array_equal(fit(np.int64(3)), fit(3))
    assert (fit(None) != fit(None)).any()


def test_bad_input_is_refused_by_name(sample):
    X, y, is_clean = sample.X, sample.y, sample.is_clean
    orphan = is_clean & (y != 3)
    for arguments, message in [
        ({"is_clean": orphan}, r"class `3` has \d+ candidates but no clean example\nhint: "),
        ({"is_clean": is_clean[:-1]}, r"is_clean: expected one true or false per row, .*, \d+ in all, found \d+"),
        ({"is_clean": np.full(len(y), "yes")}, "is_clean, row 0: expected true or false"),
        ({"is_clean": is_clean, "relevance": np.full(len(y), 2.0)}, r"relevance, row \d+: expected a number in \[0, 1\], found 2.0"),
        ({"is_clean": is_clean, "relevance": [1.0]}, "relevance: expected one number per example"),
    ]:
        with pytest.raises(ValueError, match=message):
            PrototypeClassifier().fit(X, y, **arguments)
    with pytest.raises(ValueError, match="y, row 4: expected a class, found None"):
        Cleaner().fit(X, [None if i == 4 else "a" for i in range(len(y))], is_clean=True)
    with pytest.raises(ValueError, match="epochs: expected a positive integer, found 0"):
        CosineClassifier(epochs=0).fit(X, y, is_clean=is_clean)
    with pytest.raises(ValueError, match="scale: expected a positive number"):
        PrototypeClassifier(scale=-1).fit(X, y, is_clean=is_clean)
    with pytest.raises(ValueError, match="X has 5 features, but PrototypeClassifier is expecting 64"):
        PrototypeClassifier().fit(X, y, is_clean=is_clean).predict(X[:, :5])


def test_flags_may_be_numbers_and_relevance_may_be_given(sample):
    fitted = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean)
    as_numbers = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean.astype(int))
    given = PrototypeClassifier().fit(sample.X, sample.y, is_clean=sample.is_clean, relevance=fitted.relevance_)
    np.testing.assert_array_equal(fitted.coef_, as_numbers.coef_)
    np.testing.assert_array_equal(fitted.coef_, given.coef_)


def test_a_table_of_the_result_holds_the_reasons(sample):
    fitted = Cleaner().fit(sample.X, sample.y, is_clean=sample.is_clean)
    table = fitted.to_table(ids=[f"x{i}" for i in range(len(sample.y))])
    row = int(np.flatnonzero(~sample.is_clean)[0])
    same_class = np.flatnonzero(sample.is_clean & (sample.y == sample.y[row]))
    cosines = sample.X[same_class] @ sample.X[row]
    assert table["best_clean"][row] == f"x{same_class[cosines.argmax()]}"
    assert table["best_clean_similarity"][row] == pytest.approx(cosines.max(), abs=1e-6)
    assert table["best_clean"][np.flatnonzero(sample.is_clean)[0]] is None


WITHOUT_SKLEARN = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
import labelsieve
data = labelsieve.demo_data(n_classes=4)
assert not any(name.split(".")[0] in ("sklearn", "scipy", "pandas", "torch") for name in sys.modules if sys.modules[name])
model = labelsieve.PrototypeClassifier(lam=0.5).fit(data.X, data.y, is_clean=data.is_clean)
assert model.get_params()["lam"] == 0.5 and model.set_params(lam=0.1).lam == 0.1
assert model.score(data.X_test, data.y_test) > 0.8 and "lam=0.1" in repr(model)
for wrong in (lambda: model.predict(data.X[:, :3]), lambda: labelsieve.Cleaner().to_table(), lambda: model.set_params(x=1),
              lambda: model.fit(data.X, data.y[:5], is_clean=True)):
    try:
        wrong()
    except ValueError as error:
        print(error)
    else:
        raise SystemExit("not refused")
"""


def test_estimators_need_numpy_only():
    done = subprocess.run([sys.executable, "-c", WITHOUT_SKLEARN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "X has 3 features, but PrototypeClassifier is expecting 64 features as input" in done.stdout
    assert "is not fitted yet" in done.stdout
