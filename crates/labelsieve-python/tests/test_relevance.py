"""`labelsieve.relevance` against numpy, scipy and a PyTorch network written here."""

import math
import re

import numpy as np
import pytest
from conftest import unit
from random_stream import Stream

import labelsieve
from labelsieve import relevance


def array(values):
    return np.array(values, np.float32)


def test_similarity_agrees_with_the_golden_file(golden):
    case = golden("similarity")
    rows, k = array(case["features"]), case["n_clean"]
    found = relevance(rows[:k], rows[k:], method="similarity")
    np.testing.assert_allclose(found, case["relevance_f64"], atol=1e-6)


def test_label_propagation_agrees_with_the_golden_dense_solve(golden):
    file = golden("label_propagation")
    k = file["n_clean"]
    for case in file["cases"]:
        rows = array(case["features"])
        found = relevance(rows[:k], rows[k:], "label-propagation", neighbours=case["neighbours"])
        np.testing.assert_allclose(found, np.minimum(case["r_f64"][k:], 1), atol=1e-5)


def test_linear_agrees_with_the_golden_minimiser(golden):
    for case in golden("logistic")["cases"]:
        found = relevance(case["positive"], case["rows"], "linear", others=case["negative"])
        np.testing.assert_allclose(found, case["probabilities_f64"], atol=1e-4)


def test_gcn_with_dropout_agrees_with_pytorch_on_average(golden):
    case = golden("gcn_dropout")
    rows, k = array(case["features"]), case["n_clean"]
    found = [relevance(rows[:k], rows[k:], "gcn", lam=case["lambda"], seed=seed) for seed in range(100)]
    error_of_mean = math.sqrt(1 / len(found) + 1 / case["n_seeds"])
    allowed = 5 * np.array(case["deviation"]) * error_of_mean
    assert (np.abs(np.mean(found, axis=0) - case["mean"]) < allowed).all()


def dense_propagation(rows, count):
    """Ã = D⁻¹(A + I) of reciprocal neighbours, the slow way."""
    similarity = rows.astype(np.float64) @ rows.astype(np.float64).T
    order = [sorted((j for j in range(len(rows)) if j != i), key=lambda j: (-similarity[i, j], j)) for i in range(len(rows))]
    near = [set(o[:count]) for o in order]
    a = np.eye(len(rows))
    for i in range(len(rows)):
        for j in near[i]:
            if i in near[j]:
                a[i, j] = max(similarity[i, j], 0)
    return a / a.sum(axis=1, keepdims=True)


def pytorch_network(rows, n_clean, lam, propagation, seed, iterations=100):
    """A GCN (or, with the identity, an MLP) of two layers by autograd, from the same initial weights, without dropout."""
    torch = pytest.importorskip("torch")
    dim, hidden = rows.shape[1], 16
    draws = 2 * Stream(seed).branch(0).uniform(dim * hidden + 2 * hidden + 1) - 1
    draws[: (dim + 1) * hidden] /= math.sqrt(hidden)
    split = np.split(draws, np.cumsum([dim * hidden, hidden, hidden]))
    shapes = [(dim, hidden), (hidden,), (hidden, 1), (1,)]
    weights = [torch.tensor(w.reshape(s), requires_grad=True) for w, s in zip(split, shapes)]
    a, x = torch.tensor(propagation, dtype=torch.float32), torch.tensor(rows)

    def probabilities():
        theta_1, bias_1, theta_2, bias_2 = weights
        return torch.sigmoid(a @ torch.relu(a @ x @ theta_1 + bias_1) @ theta_2 + bias_2)[:, 0]

    adam = torch.optim.Adam(weights, lr=0.1, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.StepLR(adam, 30, 0.1)
    for _ in range(iterations):
        p = probabilities()
        loss = -(p[:n_clean] + 1e-6).log().mean() - lam * (1 - p[n_clean:] + 1e-6).log().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        schedule.step()
    return probabilities().detach().numpy()[n_clean:]


@pytest.mark.parametrize("method", ["gcn", "mlp"])
def test_training_agrees_with_pytorch_from_the_same_weights(method):
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((3, 12))
    rows = unit(centres[rng.integers(0, 3, 80)] + 0.7 * rng.standard_normal((80, 12)))
    clean, noisy, lam, seed = rows[:3], rows[3:], {"gcn": 0.7, "mlp": 0.05}[method], 11
    propagation = dense_propagation(rows, 10) if method == "gcn" else np.eye(len(rows))
    settings = {"training": {"dropout": 0.0}}
    found = relevance(clean, noisy, method, lam, seed, neighbours=10, settings=settings)
    expected = pytorch_network(rows, 3, lam, propagation, seed)
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert found.std() > 0.1, "a constant would prove nothing"


def test_the_gcn_tells_right_from_wrong(one_class):
    clean, noisy, truth = one_class
    found = relevance(clean, noisy, "gcn", lam=0.3)
    assert found.dtype == np.float32 and found.shape == truth.shape
    assert found[truth].mean() > found[~truth].mean() + 0.2


def test_the_same_seed_gives_the_same_numbers_at_any_number_of_threads(one_class):
    clean, noisy, _ = one_class
    first = relevance(clean, noisy, seed=7)
    try:
        labelsieve.set_num_threads(3)
        assert labelsieve.get_num_threads() == 3
        np.testing.assert_array_equal(first, relevance(clean, noisy, seed=7))
    finally:
        labelsieve.set_num_threads(0)
    assert (first != relevance(clean, noisy, seed=8)).any()


def test_beta_gives_the_same_to_all_and_no_candidates_give_nothing(one_class):
    clean, noisy, _ = one_class
    assert (relevance(clean, noisy, "beta", beta=0.25) == 0.25).all()
    for method in ["gcn", "mlp", "label_propagation", "similarity", "beta", "mixture", "auto"]:
        assert relevance(clean, noisy[:0], method).shape == (0,)


def test_other_classes_explain_candidates_away(one_class):
    clean, noisy, truth = one_class
    assert (relevance(clean, noisy, "mixture") == 1).all(), "nothing to compare with"
    alone = relevance(clean, noisy, "auto")
    assert np.corrcoef(alone, relevance(clean, noisy, "gcn"))[0, 1] > 0.9, "the network's order, more or less"
    others = np.stack([noisy[~truth].mean(axis=0), -clean.mean(axis=0)])
    for method in ["mixture", "auto"]:
        found = relevance(clean, noisy, method, other_classes=others)
        assert found[truth].mean() > found[~truth].mean() + 0.2


def test_lambda_follows_the_paper_unless_given(one_class):
    clean, noisy, _ = one_class
    lam = labelsieve.paper_lambda(len(clean))
    np.testing.assert_array_equal(relevance(clean, noisy), relevance(clean, noisy, lam=lam))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "gnc"}, "method: expected auto, gcn, mlp, label-propagation, similarity, linear, beta or mixture, found `gnc`"),
        ({"lam": -1}, "lambda: expected a non-negative number, found -1"),
        ({"lam": "big"}, "lam: expected a number, found 'big'"),
        ({"lam": float("nan")}, "lam: expected a finite number, found nan"),
        ({"method": "beta", "beta": 2}, "beta: expected a number in [0, 1], found 2"),
        ({"neighbours": 0}, "neighbours: expected a positive integer, found 0"),
        ({"seed": -1}, "seed: expected an integer in"),
        ({"seed": "x"}, "seed: expected an integer, None or a numpy generator"),
        ({"device": "gpu"}, "device `gpu`: expected auto, cpu, cuda"),
        ({"method": "linear"}, "linear needs examples of other classes, found none"),
        ({"settings": {"lamda": 1}}, "method: unknown field `lamda`"),
    ],
)
def test_bad_settings_are_refused_by_name(one_class, arguments, message):
    clean, noisy, _ = one_class
    with pytest.raises(ValueError, match=re.escape(message)):
        relevance(clean, noisy, **arguments)


def test_bad_arrays_are_refused_by_name(one_class):
    clean, noisy, _ = one_class
    spoilt = noisy.copy()
    spoilt[5, 3] = np.nan
    for arguments, message in [
        ((clean[:0], noisy), "at least one clean example"),
        ((clean, noisy[:, :5]), "the noisy set has 5 columns, but the clean set has 64"),
        ((clean, spoilt), "noisy: feature row 5, column 3: expected a finite number, found NaN"),
        ((clean, noisy[0]), "noisy: expected 2 dimensions"),
        ((clean, noisy[:, :0]), "noisy: expected at least 1 column"),
        ((clean, noisy.astype(str)), "noisy: expected numbers, found values of type"),
        ((clean, [[1.0, 2.0], [3.0]]), "noisy: expected rows of equal length"),
        ((clean, noisy.astype(np.float64) * 1e300), "expected a finite number, found"),
    ]:
        with pytest.raises(ValueError, match=message):
            relevance(*arguments)
