#!/usr/bin/env python3
"""Writes the expected numbers of the method tests, as JSON files beside this script.

    python3 make_golden.py            # all files
    python3 make_golden.py gcn graph  # some of them

Made with Python 3.11, numpy 2.4.6, scipy 1.17.1, torch 2.15.0 (CPU, one thread), scikit-learn 1.9.1.

Every file is written by the slowest, plainest code that follows `method.md`: dense matrices, autograd,
no shortcut of ours. Matrices are row-major nested lists. Inputs are f32 values and are printed with 9
significant digits, which is enough to read back the same f32. Expected values computed in float64 are
printed with 9 digits too; the name of the field then ends in `_f64`, or the file says so in `about`.

The script checks its own cases before it writes them: neighbour lists must not hang on a rounding
error, and trained networks must give the same answer in float32 and float64, with the hidden units
and the rows summed in another order, and after a nudge of the initial weights by one part in 10^7.
A seed that fails is replaced by the next one, so the files are a test of the method, not of luck.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import scipy.optimize
import sklearn.metrics
import torch

HERE = Path(__file__).resolve().parent
DIM = 12
N_NOISY = 60
N_HIDDEN = 16
N_ITERATIONS = 100
LOG_EPS = 1e-6


# --- writing -------------------------------------------------------------------------------------


def plain(value):
    """Arrays and floats as lists of numbers with 9 significant digits; whole numbers stay short."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor):
        return plain(value.detach().numpy())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, int, str, np.integer)):
        return value if isinstance(value, (bool, int, str)) else int(value)
    rounded = float(f"{float(value):.9g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded


def write(name: str, about: str, **fields) -> None:
    """One JSON file, one line per field (and per case), so that a diff shows what changed."""
    lines = []
    for key, value in {"about": about, **fields}.items():
        if key == "cases":
            cases = ",\n  ".join(json.dumps(plain(case), separators=(",", ":")) for case in value)
            lines.append(f'"cases": [\n  {cases}\n]')
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(plain(value), separators=(',', ':'))}")
    path = HERE / f"{name}.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path.name}: {path.stat().st_size / 1000:.1f} kB")


# --- features ------------------------------------------------------------------------------------


def unit(rows: np.ndarray) -> np.ndarray:
    """Unit-norm f32 rows."""
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def clustered(n_clean: int, n_noisy: int, seed: int) -> np.ndarray:
    """Clean rows first, all from cluster 0 of 4; a third of the noisy rows come from it too."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((4, DIM)))
    cluster = np.concatenate([np.zeros(n_clean, int), rng.choice(4, n_noisy, p=[0.34, 0.3, 0.2, 0.16])])
    return unit(centres[cluster] + 0.9 * rng.standard_normal((n_clean + n_noisy, DIM)) / math.sqrt(DIM))


def with_oddities(rows: np.ndarray, n_clean: int) -> np.ndarray:
    """Two noisy duplicates, a noisy copy of a clean row, a triple, and a zero row."""
    rows = rows.copy()
    rows[n_clean + 7] = rows[n_clean + 2]
    rows[n_clean + 20] = rows[0]
    rows[n_clean + 31] = rows[n_clean + 32] = rows[n_clean + 30]
    rows[n_clean + 40] = 0.0
    return rows


# --- graph ---------------------------------------------------------------------------------------


def similarities(rows: np.ndarray) -> np.ndarray:
    """All inner products, in float64 and each by the same order of additions, so duplicates tie exactly."""
    wide = rows.astype(np.float64)
    return np.array([[math.fsum(a * b) for b in wide] for a in wide])


def nearest(similarity: np.ndarray, n_neighbours: int) -> list[list[int]]:
    """The most similar other rows of each row; self is left out by index, the lower index wins a tie."""
    n_rows = len(similarity)
    lists = []
    for i in range(n_rows):
        others = sorted((j for j in range(n_rows) if j != i), key=lambda j: (-similarity[i, j], j))
        lists.append(others[: min(n_neighbours, n_rows - 1)])
    return lists


def affinity(similarity: np.ndarray, lists: list[list[int]]) -> np.ndarray:
    """A: positive part of the similarity of reciprocal neighbours, zero diagonal."""
    n_rows = len(similarity)
    a = np.zeros((n_rows, n_rows))
    for i, neighbours in enumerate(lists):
        for j in neighbours:
            if i in lists[j]:
                a[i, j] = max(similarity[i, j], 0.0)
    return a


def normalised(a: np.ndarray) -> np.ndarray:
    """D^-1 (A + I)."""
    looped = a + np.eye(len(a))
    return looped / looped.sum(axis=1, keepdims=True)


def graph_of(rows: np.ndarray, n_neighbours: int) -> np.ndarray:
    """A of these rows."""
    similarity = similarities(rows)
    return affinity(similarity, nearest(similarity, n_neighbours))


def smallest_gap(rows: np.ndarray, n_neighbours: int) -> float:
    """How far the last neighbour is from the first row left out, where that is not an exact tie.

    Only positive similarities count: what happens below zero is clipped away.
    """
    similarity = similarities(rows)
    gaps = [math.inf]
    for i, neighbours in enumerate(nearest(similarity, len(rows))):
        if n_neighbours < len(neighbours):
            last, left_out = (similarity[i, neighbours[at]] for at in (n_neighbours - 1, n_neighbours))
            if last > 0 and last != left_out:
                gaps.append(last - left_out)
    return min(gaps)


def make_graph() -> None:
    n_clean = 3
    for seed in range(100):
        rows = with_oddities(clustered(n_clean, N_NOISY, seed), n_clean)
        if min(smallest_gap(rows, n) for n in (8, 50)) > 1e-5:
            break
    else:
        sys.exit("error: no seed without near-ties")
    cases = []
    for n_neighbours in (8, 50):
        similarity = similarities(rows)
        lists = nearest(similarity, n_neighbours)
        a = affinity(similarity, lists)
        one_way = sum(j not in lists[i] for j, own in enumerate(lists) for i in own)
        print(f"  neighbours {n_neighbours}: {np.count_nonzero(a)} edges, {one_way} one-way pairs dropped, "
              f"{sum(not row.any() for row in a)} isolated rows, gap {smallest_gap(rows, n_neighbours):.1e}")
        cases.append({
            "neighbours": n_neighbours,
            "nearest": lists,
            "a_tilde": normalised(a).astype(np.float32),
        })
    write("graph", "A~ = D^-1 (A + I), dense; rows 0..2 are clean. `nearest` lists are sorted by similarity, then "
                   "index. Row 43 is zero; 10 = 5, 23 = 0, 33 = 34 = 35 are duplicates.",
          seed=seed, n_clean=n_clean, features=rows, cases=cases)


# --- GCN and MLP ---------------------------------------------------------------------------------


def initial_weights(rng: np.random.Generator, dim: int = DIM) -> dict[str, np.ndarray]:
    """Uniform in ±1/sqrt(out width), weights and biases of both layers."""
    hidden, out = 1 / math.sqrt(N_HIDDEN), 1.0
    draw = lambda bound, *shape: rng.uniform(-bound, bound, shape).astype(np.float32)
    return {"w1": draw(hidden, dim, N_HIDDEN), "b1": draw(hidden, N_HIDDEN),
            "w2": draw(out, N_HIDDEN, 1), "b2": draw(out, 1)}


def probabilities(a_tilde, features, weights, keep=None) -> torch.Tensor:
    """sigma(Ã (h W2) + b2) with h = relu(Ã (V W1) + b1); `keep` is a dropout mask, already scaled."""
    hidden = torch.relu(a_tilde @ (features @ weights["w1"]) + weights["b1"])
    if keep is not None:
        hidden = hidden * keep
    return torch.sigmoid(a_tilde @ (hidden @ weights["w2"]) + weights["b2"]).squeeze(-1)


def loss_eq_3(p: torch.Tensor, n_clean: int, lam: float) -> torch.Tensor:
    """Mean over clean of -ln p, plus lambda times the mean over noisy of -ln(1 - p)."""
    clean, noisy = p[..., :n_clean], p[..., n_clean:]
    return -(clean + LOG_EPS).log().mean(-1) - lam * (1 - noisy + LOG_EPS).log().mean(-1)


def train(a_tilde, features, start, n_clean, lam, dtype, dropout_seed=None):
    """100 iterations of Adam. Gives the losses (each before its update) and the final probabilities.

    `start` may carry a leading axis of independent runs; their losses are summed, which leaves every
    gradient as it would be alone.
    """
    a_tilde, features = (torch.as_tensor(np.asarray(x), dtype=dtype) for x in (a_tilde, features))
    weights = {name: torch.tensor(np.asarray(w), dtype=dtype, requires_grad=True) for name, w in start.items()}
    optimiser = torch.optim.Adam(weights.values(), lr=0.1, betas=(0.9, 0.999), eps=1e-8, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=30, gamma=0.1)
    generator = torch.Generator().manual_seed(dropout_seed or 0)
    batched = weights["w1"].dim() == 3
    losses = []
    for _ in range(N_ITERATIONS):
        keep = None
        if dropout_seed is not None:
            shape = weights["w1"].shape[:-2] + (len(features), N_HIDDEN)
            keep = (torch.rand(shape, generator=generator) < 0.5).to(dtype) * 2
        shaped = {n: w.unsqueeze(1) if batched and n[0] == "b" else w for n, w in weights.items()}
        loss = loss_eq_3(probabilities(a_tilde, features, shaped, keep), n_clean, lam)
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.detach().numpy().copy())
    with torch.no_grad():
        shaped = {n: w.unsqueeze(1) if batched and n[0] == "b" else w for n, w in weights.items()}
        return np.array(losses), probabilities(a_tilde, features, shaped).numpy()


def conditioning(a_tilde, features, start, n_clean, lam) -> dict:
    """The run of one case, and how far it moves when only rounding changes."""
    losses, p32 = train(a_tilde, features, start, n_clean, lam, torch.float32)
    losses64, p64 = train(a_tilde, features, start, n_clean, lam, torch.float64)
    rng = np.random.default_rng(1)

    units = rng.permutation(N_HIDDEN)
    reordered = {"w1": start["w1"][:, units], "b1": start["b1"][units], "w2": start["w2"][units], "b2": start["b2"]}
    order = np.concatenate([rng.permutation(n_clean), n_clean + rng.permutation(len(features) - n_clean)])
    _, p_order = train(a_tilde[np.ix_(order, order)], features[order], reordered, n_clean, lam, torch.float32)

    nudged = {n: w * (1 + 1e-7 * rng.choice([-1, 1], w.shape)) for n, w in start.items()}
    _, p_nudged = train(a_tilde, features, nudged, n_clean, lam, torch.float64)
    return {
        "losses": losses, "p32": p32, "p64": p64,
        "gap": float(np.abs(p32 - p64).max()),
        "worst": float(max(np.abs(p32 - p64).max(), np.abs(p_order[np.argsort(order)] - p64).max(),
                           np.abs(p_nudged - p64).max())),
        "loss_gap": float(np.abs(losses - losses64).max()),
    }


CASES = [  # k, lambda, neighbours
    (1, 0.01, 50),
    (3, 0.05, 50),
    (3, 0.05, 8),
    (10, 1.0, 8),
]


def well_conditioned(features, n_clean, lam, a_tilde) -> tuple[int, dict, dict]:
    """The first weight seed whose answer does not hang on rounding."""
    for seed in range(200):
        start = initial_weights(np.random.default_rng(seed))
        run = conditioning(a_tilde, features, start, n_clean, lam)
        if run["worst"] < 5e-6 and np.ptp(run["p64"][n_clean:]) > 0.2:
            return seed, start, run
    sys.exit(f"error: no well-conditioned start for k = {n_clean}, lambda = {lam}")


def make_gcn() -> None:
    clean, noisy = np.split(with_oddities(clustered(10, N_NOISY, 7), 10), [10])
    for name in ("gcn", "mlp"):
        cases = []
        for n_clean, lam, n_neighbours in CASES:
            if name == "mlp" and n_neighbours == 8 and n_clean == 3:
                continue  # no graph, so the same case as the one before
            features = np.vstack([clean[:n_clean], noisy])
            gap = smallest_gap(features, n_neighbours)
            assert gap > 1e-5, f"near-tie {gap:.1e} in the graph of k = {n_clean}"
            a_tilde = normalised(graph_of(features, n_neighbours)) if name == "gcn" else np.eye(len(features))
            a_tilde = a_tilde.astype(np.float32)
            seed, start, run = well_conditioned(features, n_clean, lam, a_tilde)
            noisy_p = run["p32"][n_clean:]
            print(f"  {name} k {n_clean} lambda {lam} neighbours {n_neighbours} weight seed {seed}: loss "
                  f"{run['losses'][0]:.4f} -> {run['losses'][-1]:.6f}; f32 - f64: p {run['gap']:.1e}, loss "
                  f"{run['loss_gap']:.1e}; worst {run['worst']:.1e}; noisy p {noisy_p.min():.3f}..{noisy_p.max():.3f}")
            case = {"n_clean": n_clean, "lambda": lam}
            if name == "gcn":
                case["neighbours"] = n_neighbours
            cases.append(case | {"weight_seed": seed, **start, "losses": run["losses"],
                                 "probabilities": run["p32"], "probabilities_f64": run["p64"],
                                 "largest_f32_f64_difference": run["gap"]})
        graph = "A~ of the first `n_clean` rows of `clean` and all of `noisy`" if name == "gcn" else "A~ = I"
        write(name, f"{graph}; no dropout, 100 iterations from the given weights. losses[t] is eq. (3) before "
                    "update t; probabilities are those after the last update, clean rows first.",
              clean=clean, noisy=noisy, cases=cases)


def make_gcn_dropout() -> None:
    n_seeds, n_clean, lam, n_neighbours = 400, 3, 0.05, 50
    features = clustered(n_clean, N_NOISY, 11)
    assert smallest_gap(features, n_neighbours) > 1e-5
    a_tilde = normalised(graph_of(features, n_neighbours)).astype(np.float32)
    starts = [initial_weights(np.random.default_rng(1000 + seed)) for seed in range(n_seeds)]
    stacked = {name: np.stack([start[name] for start in starts]) for name in starts[0]}
    _, p = train(a_tilde, features, stacked, n_clean, lam, torch.float32, dropout_seed=5)
    relevance = p[:, n_clean:].astype(np.float64)
    mean, deviation = relevance.mean(axis=0), relevance.std(axis=0, ddof=1)
    print(f"  mean {mean.min():.3f}..{mean.max():.3f}, deviation {deviation.min():.3f}..{deviation.max():.3f}, "
          f"standard error of the mean at most {deviation.max() / math.sqrt(n_seeds):.4f}; "
          f"mean over rows: {relevance.mean(axis=1).mean():.4f} ± {relevance.mean(axis=1).std(ddof=1):.4f} per seed")
    write("gcn_dropout", "Relevance of the noisy rows (evaluation mode) over independent starts and dropout masks: "
                         "mean and sample standard deviation per row. `mean_of_rows` and `deviation_of_mean_of_rows` "
                         "are the same for the average over rows, whose spread rows share.",
          n_seeds=n_seeds, n_clean=n_clean, **{"lambda": lam}, neighbours=n_neighbours, dropout=0.5,
          features=features, mean=mean, deviation=deviation,
          mean_of_rows=relevance.mean(axis=1).mean(), deviation_of_mean_of_rows=relevance.mean(axis=1).std(ddof=1))


# --- the other relevance models ------------------------------------------------------------------


def make_label_propagation() -> None:
    n_clean, alpha = 3, 0.9
    cases = []
    for n_neighbours in (8, 50):
        for seed in range(3, 100):
            features = with_oddities(clustered(n_clean, N_NOISY, seed), n_clean)
            if smallest_gap(features, n_neighbours) > 1e-5:
                break
        a = graph_of(features, n_neighbours)
        degree = a.sum(axis=1)
        inverse_root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
        s = inverse_root[:, None] * a * inverse_root[None, :]
        y = (np.arange(len(a)) < n_clean).astype(float)
        r = np.linalg.solve(np.eye(len(a)) - alpha * s, y)
        isolated = np.flatnonzero(degree == 0)
        assert isolated.size and np.array_equal(r[isolated], y[isolated])
        print(f"  neighbours {n_neighbours}: r {r.min():.3g}..{r.max():.3g}, noisy up to {r[n_clean:].max():.3g}, "
              f"isolated {isolated.tolist()}")
        cases.append({"neighbours": n_neighbours, "features": features, "isolated": isolated, "r_f64": r})
    write("label_propagation", "r solves (I - alpha D^-1/2 A D^-1/2) r = y, y = 1 for the clean rows, no self loops, "
                               "isolated rows keep y; dense float64 solve, not scaled.",
          n_clean=n_clean, alpha=alpha, cases=cases)


def make_similarity() -> None:
    n_clean = 3
    features = with_oddities(clustered(n_clean, 20 + 21, 4), n_clean)
    mean = features[:n_clean].astype(np.float64).mean(axis=0)
    direction = mean / np.linalg.norm(mean)
    relevance = (1 + features[n_clean:].astype(np.float64) @ direction) / 2
    write("similarity", "(1 + v.x) / 2 of the noisy rows, x the unit-norm mean of the clean rows; float64. A zero row "
                        "gives 0.5.",
          n_clean=n_clean, features=features, direction_f64=direction, relevance_f64=relevance)


def make_mixture() -> None:
    """EM for a mixture of the own class and fixed other ones over a reciprocal graph, with all posteriors written out."""
    contrast, pull, rounds, neighbours, first_own = 3.0, 2.0, 10, 8, 0.6
    cases = []
    for n_clean, n_others, n_decided, seed in ((1, 6, 0, 21), (3, 1, 0, 22), (2, 9, 5, 23)):
        rng = np.random.default_rng(100 + seed)
        features = with_oddities(clustered(n_clean, N_NOISY, seed), n_clean)
        # The centres of the first three noise clusters are among the other classes; the rest has nothing to do with them.
        centres = unit(np.random.default_rng(seed).standard_normal((4, DIM)))
        others = unit(np.vstack([centres[1:], rng.standard_normal((9, DIM))])[:n_others])
        clean, noisy = (part.astype(np.float64) for part in np.split(features, [n_clean]))
        accepted, rejected = np.split(rng.permutation(N_NOISY)[: 2 * n_decided], [n_decided])
        products = noisy @ others.T.astype(np.float64)
        tau = contrast / products.std()
        graph = graph_of(features, neighbours)[n_clean:].astype(np.float64)
        degree = graph.sum(1, keepdims=True)
        proportion = np.concatenate([[first_own], np.full(n_others, (1 - first_own) / n_others)])
        direction = clean.sum(0) + noisy[accepted].sum(0)
        posterior = None
        for _ in range(rounds):
            direction /= np.linalg.norm(direction)
            logit = np.log(proportion) + tau * np.column_stack([noisy @ direction, products])
            if posterior is not None:
                of_clean = np.tile(np.eye(n_others + 1)[0], (n_clean, 1))
                logit += pull * (graph @ np.vstack([of_clean, posterior])) / np.where(degree > 0, degree, 1)
            posterior = np.exp(logit - logit.max(1, keepdims=True))
            posterior /= posterior.sum(1, keepdims=True)
            posterior[accepted] = np.eye(n_others + 1)[0]
            posterior[rejected, 0] = 0
            posterior[rejected] /= posterior[rejected].sum(1, keepdims=True)
            proportion = (posterior.sum(0) + 1 / (n_others + 1)) / (N_NOISY + 1)
            direction = clean.sum(0) + (posterior[:, :1] * noisy).sum(0)
        own = posterior[:, 0]
        print(f"  k {n_clean}, {n_others} others: tau {tau:.2f}, proportions {np.round(proportion, 3)}, relevance "
              f"{own.min():.3g}..{own.max():.3f}, {((own > 0.1) & (own < 0.9)).sum()} in between")
        cases.append({"n_clean": n_clean, "features": features, "other_classes": others,
                      "accepted": np.sort(accepted), "rejected": np.sort(rejected), "relevance_f64": own})
    write("mixture", "Posterior of the own class in the last of `rounds` rounds of EM; tau = contrast / standard deviation of all "
                     "products with other classes. Accepted rows have posterior 1 in every round, rejected ones 0; float64.",
          contrast=contrast, pull=pull, rounds=rounds, neighbours=neighbours, cases=cases)


def make_prototype() -> None:
    rng = np.random.default_rng(5)
    n_clean = 3
    features = clustered(n_clean, 20, 5)
    weight = np.concatenate([np.ones(n_clean), rng.uniform(0, 1, 20)]).astype(np.float32)
    weight[n_clean + 4] = 0.0
    w = (weight[:, None].astype(np.float64) * features).sum(axis=0) / weight.sum(dtype=np.float64)
    write("prototype", "Eq. (5): the relevance-weighted mean of the rows, and its unit-norm version; float64.",
          n_clean=n_clean, features=features, relevance=weight, mean_f64=w, prototype_f64=w / np.linalg.norm(w))


def make_cosine_loss() -> None:
    rng = np.random.default_rng(6)
    n_classes, n_rows, dim, scale = 4, 30, 8, 10.0
    features = (unit(rng.standard_normal((n_rows, dim))) * rng.uniform(0.5, 2, (n_rows, 1))).astype(np.float32)
    label = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n_rows - n_classes, p=[0.4, 0.3, 0.2, 0.1])])
    relevance = np.where(np.arange(n_rows) < n_classes, 1, rng.uniform(0, 1, n_rows)).astype(np.float32)
    start = (rng.standard_normal((n_classes, dim)) * rng.uniform(0.3, 2, (n_classes, 1))).astype(np.float32)

    w = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    x, r = torch.tensor(features, dtype=torch.float64), torch.tensor(relevance, dtype=torch.float64)
    cosine = (x / x.norm(dim=1, keepdim=True)) @ (w / w.norm(dim=1, keepdim=True)).T
    log_p = torch.log_softmax(scale * cosine, dim=1)
    loss = torch.zeros((), dtype=torch.float64)
    for c in range(n_classes):
        members = torch.as_tensor(label == c)
        loss = loss - (r[members] * log_p[members, c]).sum() / r[members].sum()
    loss.backward()
    print(f"  loss {loss.item():.6f}, gradient norm {w.grad.norm().item():.6f}")
    write("cosine_loss", "Eq. (6), summed over classes, and its gradient; neither rows nor weights have unit norm. W is "
                         "one row per class. scores: s * cosine. All float64 by torch autograd.",
          scale=scale, features=features, label=label, relevance=relevance, w=start,
          scores_f64=scale * cosine, loss_f64=loss.item(), gradient_f64=w.grad)


def make_logistic() -> None:
    penalty = 0.01
    rng = np.random.default_rng(8)
    centres = unit(rng.standard_normal((4, DIM)))
    near = lambda centre, n: unit(centres[centre] + 0.9 * rng.standard_normal((n, DIM)) / math.sqrt(DIM))
    cases = []
    for n_positive, n_negative in ((1, 40), (5, 40), (20, 100)):
        positive = near(0, n_positive)
        negative = np.vstack([near(1 + i % 3, 1) for i in range(n_negative)])
        rows = np.vstack([near(0, 10), near(1, 10)])
        pos, neg = positive.astype(np.float64), negative.astype(np.float64)

        def objective(parameters):
            w, b = parameters[:-1], parameters[-1]
            on_pos, on_neg = pos @ w + b, neg @ w + b
            value = np.logaddexp(0, -on_pos).mean() + np.logaddexp(0, on_neg).mean() + penalty / 2 * w @ w
            pull = -1 / (1 + np.exp(on_pos)) / len(pos)  # d/dlogit of -ln p
            push = 1 / (1 + np.exp(-on_neg)) / len(neg)  # d/dlogit of -ln(1 - p)
            return value, np.concatenate([pos.T @ pull + neg.T @ push + penalty * w, [pull.sum() + push.sum()]])

        found = scipy.optimize.minimize(objective, np.zeros(DIM + 1), jac=True, method="L-BFGS-B",
                                        options={"maxiter": 10000, "maxfun": 100000, "ftol": 0, "gtol": 1e-12})
        gradient = np.abs(objective(found.x)[1]).max()
        assert gradient < 1e-8, f"not converged: gradient {gradient:.1e}"
        w, b = found.x[:-1], found.x[-1]
        print(f"  {n_positive} + {n_negative}: objective {found.fun:.9f}, gradient {gradient:.1e}, |w| {np.linalg.norm(w):.3f}")
        cases.append({"positive": positive, "negative": negative, "rows": rows, "w_f64": w, "b_f64": b,
                      "objective_f64": found.fun, "probabilities_f64": 1 / (1 + np.exp(-(rows @ w + b)))})
    write("logistic", "Minimiser of mean over positives of -ln p + mean over negatives of -ln(1 - p) + penalty/2 |w|^2, "
                      "bias free; float64. Probabilities are those of `rows`.",
          penalty=penalty, cases=cases)


# --- metrics -------------------------------------------------------------------------------------


def make_metrics() -> None:
    rng = np.random.default_rng(9)
    rankings = []
    for n, steps in ((12, 4), (60, 10), (60, 1000), (30, 1), (5, 3)):
        truth = (rng.uniform(size=n) < 0.4).astype(int)
        truth[:2] = 0, 1  # both kinds occur
        score = (np.round((rng.uniform(size=n) + 0.3 * truth) * steps) / steps).astype(np.float32)
        if steps == 1:
            score[:] = 0.5  # all tied
        rankings.append({"truth": truth, "score": score,
                         "roc_auc_f64": sklearn.metrics.roc_auc_score(truth, score),
                         "average_precision_f64": sklearn.metrics.average_precision_score(truth, score)})

    n_rows, n_classes = 40, 9
    label = rng.integers(0, n_classes, n_rows)
    scores = rng.standard_normal((n_rows, n_classes)).astype(np.float32)
    scores[np.arange(n_rows), label] += 0.8
    rank = np.array([sum(scores[i] > scores[i, label[i]]) for i in range(n_rows)])
    assert all(len(set(row)) == n_classes for row in scores.tolist()), "ties would make top-k a matter of taste"
    top = {k: float((rank < k).mean()) for k in (1, 5)}
    for k, value in top.items():
        other = sklearn.metrics.top_k_accuracy_score(label, scores, k=k, labels=np.arange(n_classes))
        assert abs(other - value) < 1e-12
    print(f"  top-1 {top[1]}, top-5 {top[5]}")
    write("metrics", "ROC-AUC and average precision of scikit-learn, with ties (a tie counts half in the AUC; in the "
                     "average precision tied rows enter together); top-1 and top-5 of a score matrix without ties.",
          cases=rankings, label=label, scores=scores, top_1=top[1], top_5=top[5])


def make_discriminant() -> None:
    """Gaussian classes with one covariance, by explicit inverses, and scikit-learn's where all weights are equal."""
    from sklearn.covariance import ledoit_wolf
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(11)
    dim, n_clean, n_noisy = 6, 2, 9
    centres = rng.normal(size=(3, dim))
    unit = lambda rows: (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)  # noqa: E731
    scale = np.array([2, 0.6, 0.4, 0.3, 0.2, 0.1])  # so that there is a shape to be found
    clean = [unit(centre + 0.5 * scale * rng.normal(size=(n_clean, dim))) for centre in centres]
    noisy = [unit(centre + 0.8 * scale * rng.normal(size=(n_noisy, dim))) for centre in centres]
    weights = [rng.uniform(0.05, 1, size=n_noisy).astype(np.float32) for _ in centres]
    test = unit(rng.normal(size=(5, dim)))

    def moments(rows, weight, totals):
        """Means, and 1/K times the sum over classes of their scatter divided by `totals`."""
        means = [w @ x / w.sum() for x, w in zip(rows, weight)]
        scatter = [(x - m).T @ ((x - m) * w[:, None]) / t for x, w, m, t in zip(rows, weight, means, totals)]
        return np.array(means), sum(scatter) / len(rows)

    def distances(x, means, within, gamma, trace):
        inverse = np.linalg.inv((1 - gamma) * within + gamma * trace / dim * np.eye(dim))
        return np.array([(x - mean) @ inverse @ (x - mean) for mean in means])

    rows = [np.vstack([c, n]).astype(np.float64) for c, n in zip(clean, noisy)]
    weight = [np.concatenate([np.ones(n_clean), w]).astype(np.float64) for w in weights]
    totals = [w.sum() for w in weight]
    means, within = moments(rows, weight, totals)
    gamma = 0.2
    trace = np.trace(within)
    squared = np.array([distances(x.astype(np.float64), means, within, gamma, trace) for x in test])
    left_out = []
    for c in range(3):
        for i in range(n_clean):
            less = [w.copy() for w in weight]
            less[c][i] = 0
            other_means, other_within = moments(rows, less, totals)
            left_out.append(distances(rows[c][i], other_means, other_within, gamma, trace))

    equal = [np.ones(len(w)) for w in weight]
    equal_means, equal_within = moments(rows, equal, [w.sum() for w in equal])
    labels = np.repeat(np.arange(3), n_clean + n_noisy)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=gamma).fit(np.vstack(rows), labels)
    plain = np.array([distances(x.astype(np.float64), equal_means, equal_within, gamma, np.trace(equal_within))
                      for x in test])
    softmax = np.exp(-0.5 * plain) / np.exp(-0.5 * plain).sum(axis=1, keepdims=True)
    probabilities = lda.predict_proba(test.astype(np.float64))
    assert np.abs(softmax - probabilities).max() < 1e-6
    centred = np.vstack([x - m for x, m in zip(rows, equal_means)])
    _, lw = ledoit_wolf(centred, assume_centered=True)
    n = len(centred)
    squares, trace_2 = (equal_within**2).sum(), np.trace(equal_within) ** 2
    oas = ((1 - 2 / dim) * squares + trace_2) / ((n + 1 - 2 / dim) * (squares - trace_2 / dim))
    print(f"  Ledoit-Wolf {lw:.4f}, OAS {oas:.4f}")
    write("discriminant", "Squared Mahalanobis distances to three classes by explicit inverses, also of every clean "
                          "example without itself; with equal weights the posteriors of scikit-learn's linear "
                          "discriminant and its Ledoit-Wolf shrinkage. OAS by the formula of Chen et al. (2010).",
          clean=clean, noisy=noisy, weights=weights, test=test, gamma=gamma, within_f64=within,
          squared_f64=squared, left_out_f64=left_out, probabilities_f64=probabilities, ledoit_wolf_f64=lw, oas_f64=oas)


MAKERS = {
    "graph": make_graph,
    "gcn": make_gcn,  # and mlp.json
    "gcn_dropout": make_gcn_dropout,
    "label_propagation": make_label_propagation,
    "similarity": make_similarity,
    "mixture": make_mixture,
    "prototype": make_prototype,
    "cosine_loss": make_cosine_loss,
    "discriminant": make_discriminant,
    "logistic": make_logistic,
    "metrics": make_metrics,
}


def main() -> None:
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(MAKERS)
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        sys.exit(f"error: no golden file {', '.join(unknown)}\nhint: choose from {', '.join(MAKERS)}")
    for name in names:
        print(name)
        MAKERS[name]()


if __name__ == "__main__":
    main()
