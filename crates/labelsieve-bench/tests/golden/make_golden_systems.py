#!/usr/bin/env python3
"""Writes the expected numbers of the systems that the paper compares with, as JSON files beside this script.

    python3 make_golden_systems.py              # all files
    python3 make_golden_systems.py diffusion    # some of them

As `make_golden.py`, whose habits these files share: dense matrices, autograd, float64, no shortcut of ours. Made with
Python 3.11, numpy 2.4.6, scipy 1.17.1, torch 2.15.0 (CPU, one thread).
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "labelsieve/tests/golden"))

import make_golden  # noqa: E402
from make_golden import unit, write  # noqa: E402

make_golden.HERE = HERE  # where files are written

torch.set_default_dtype(torch.float64)


def clusters(rng, centres, counts, spread=0.8):
    """So many unit f32 rows around each centre."""
    dim = centres.shape[1]
    return [unit(c + spread * rng.standard_normal((n, dim)) / math.sqrt(dim) * 2) for c, n in zip(centres, counts)]


def tensor(rows):
    rows = torch.tensor(np.asarray(rows, dtype=np.float64))
    return rows / rows.norm(dim=-1, keepdim=True)


# --- logistic regression -------------------------------------------------------------------------


def make_multinomial() -> None:
    rng = np.random.default_rng(21)
    dim, decay = 10, 1e-2
    centres = rng.standard_normal((4, dim))
    clean, noisy = clusters(rng, centres, (1, 3, 2, 5)), clusters(rng, centres, (4, 2, 6, 1))
    relevance = [rng.random(len(rows)).astype(np.float32) for rows in noisy]
    test = np.vstack(clusters(rng, centres, (5, 5, 5, 5)))
    weights = torch.zeros(4, dim, requires_grad=True)
    biases = torch.zeros(4, requires_grad=True)

    def objective():
        loss = decay / 2 * (weights**2).sum()
        for c in range(4):
            rows = torch.cat([tensor(clean[c]), tensor(noisy[c])])
            r = torch.cat([torch.ones(len(clean[c])), torch.tensor(relevance[c], dtype=torch.float64)])
            log_p = torch.log_softmax(rows @ weights.T + biases, dim=1)[:, c]
            loss = loss - (r * log_p).sum() / r.sum() / 4
        return loss

    solver = torch.optim.LBFGS([weights, biases], max_iter=2000, tolerance_grad=1e-13, tolerance_change=1e-16,
                               line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        loss = objective()
        loss.backward()
        return loss

    solver.step(closure)
    gradient = max(weights.grad.abs().max().item(), biases.grad.abs().max().item())
    print(f"  objective {objective().item():.9f}, gradient {gradient:.1e}")
    assert gradient < 1e-8
    write("multinomial", "Minimiser of the mean over classes of the weighted mean cross entropy + decay/2 |W|^2, biases free; "
                         "clean rows weigh 1, noisy ones by relevance. Probabilities are those of `test`.",
          dim=dim, decay=decay, clean=clean, noisy=noisy, relevance=relevance, test=test,
          probabilities_f64=torch.softmax(tensor(test) @ weights.T + biases, dim=1))


# --- diffusion -----------------------------------------------------------------------------------


def nearest(similarity, k):
    """The k most similar columns of each row; the case is refused where a rounding error would decide."""
    order = np.argsort(-similarity, axis=1, kind="stable")
    ranked = np.take_along_axis(similarity, order, 1)
    assert (ranked[:, k - 1] - ranked[:, k] > 1e-5).all(), "a neighbour hangs on a rounding error"
    return order[:, :k]


def make_diffusion() -> None:
    dim, k, n_classes, steps = 9, 4, 3, 6
    for seed in range(22, 60):
        rng = np.random.default_rng(seed)
        centres = rng.standard_normal((5, dim))
        clean = clusters(rng, centres, (2, 1, 3))
        found = clusters(rng, centres, (9, 8, 7, 8, 6))
        pools = [np.vstack([found[0], found[3][:4]]), np.vstack([found[1], found[3][2:6]]), found[2]]  # two rows are in two pools
        background, test = np.vstack([found[4], found[3][6:]]), np.vstack(clusters(rng, centres, (4, 4, 4)))
        rows, candidate_of = list(np.vstack(clean)), [None] * 6
        for c, pool in enumerate(pools):
            for row in pool:
                same = [i for i in range(6, len(rows)) if (rows[i] == row).all()]
                if same:
                    candidate_of[same[0]].append(c)
                else:
                    rows.append(row)
                    candidate_of.append([c])
        rows += list(background)
        candidate_of += [None] * len(background)
        x, y = tensor(rows).numpy(), tensor(test).numpy()
        similarity = x @ x.T
        np.fill_diagonal(similarity, -2)
        try:
            links, test_links = nearest(similarity, k), nearest(y @ x.T, k)
        except AssertionError:
            continue
        assert (np.take_along_axis(similarity, links, 1) > 1e-3).all()
        break
    n = len(rows)
    w0 = np.zeros((n, n))
    np.put_along_axis(w0, links, 1, 1)
    w = torch.tensor(w0 + w0.T)
    w = w / w.sum(1, keepdim=True)
    out = torch.zeros(len(test), n)
    out.scatter_(1, torch.tensor(test_links), 1.0)
    may = torch.ones(n, n_classes)
    for i, classes in enumerate(candidate_of):
        if classes is not None:
            may[i] = torch.tensor([float(c in classes) for c in range(n_classes)])
    results = []
    for allowed in (torch.ones(n, n_classes), may):
        labels = torch.zeros(n, n_classes)
        at = 0
        for c, own in enumerate(clean):
            labels[at:at + len(own), c] = 1
            at += len(own)
        scores = []
        for _ in range(steps + 1):
            total = labels.sum(0)
            labels = labels / torch.where(total > 0, total, 1.0)
            score = out @ labels
            total = score.sum(1, keepdim=True)
            scores.append(score / torch.where(total > 0, total, 1.0))
            labels = (w @ labels) * allowed
        results.append(torch.stack(scores))
    write("diffusion", "Scores of `test` before the first and after each step of the diffusion of labels over clean rows, candidates and "
                       "background; float64, dense. By text: candidates hold labels of the classes that found them alone.",
          neighbours=k, clean=clean, pools=pools, background=background, test=test, scores_f64=results[0],
          scores_by_text_f64=results[1])


# --- systems that learn from episodes -------------------------------------------------------------


def make_episodic() -> None:
    """Prototypical networks, a hallucinator, and prototype matching networks with one, by autograd in float64. The LSTMs are
    torch's own cells, with the second of their two biases at zero."""
    rng = np.random.default_rng(31)
    dim, hidden, noise, generated, readings = 6, 5, 3, 2, 2
    rate, momentum, decay = 0.05, 0.9, 5e-4
    centres = rng.standard_normal((5, dim))
    sets = clusters(rng, centres, (6,) * 5)
    shapes = {
        "embedding.first": (hidden, dim), "embedding.first_bias": (1, hidden),
        "embedding.second": (dim, hidden), "embedding.second_bias": (1, dim),
        "hallucinator.first": (hidden, dim + noise), "hallucinator.first_bias": (1, hidden),
        "hallucinator.second": (hidden, hidden), "hallucinator.second_bias": (1, hidden),
        "hallucinator.third": (dim, hidden), "hallucinator.third_bias": (1, dim),
        "onward.input": (4 * dim, dim), "onward.state": (4 * dim, dim), "onward.bias": (1, 4 * dim),
        "backward.input": (4 * dim, dim), "backward.state": (4 * dim, dim), "backward.bias": (1, 4 * dim),
        "reader.input": (4 * dim, dim), "reader.state": (4 * dim, 2 * dim), "reader.bias": (1, 4 * dim),
    }
    start = {name: (0.5 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    start["scale"] = np.array([[6.0]], dtype=np.float32)
    rows = [tensor(s) for s in sets]
    normalise = lambda x: torch.nn.functional.normalize(x, dim=1)

    def layers(p, name, x, depth):
        for i, part in enumerate(("first", "second", "third")[:depth]):
            x = x if i == 0 else torch.relu(x)
            x = x @ p[f"{name}.{part}"].T + p[f"{name}.{part}_bias"]
        return x

    def cell(p, name, x, state):
        """A step of torch's LSTM cell with our weights."""
        size = x.shape[1]
        return torch.ops.aten.lstm_cell(x, state, p[f"{name}.input"], p[f"{name}.state"], p[f"{name}.bias"][0],
                                        torch.zeros(4 * size))

    def embed(p, kind, x):
        return x if kind == "hallucination" else normalise(x + layers(p, "embedding", x, 2))

    def context(p, kind, prototypes):
        if kind != "prototype-matching":
            return prototypes
        total = prototypes
        for name, order in (("onward", range(len(prototypes))), ("backward", range(len(prototypes) - 1, -1, -1))):
            state = (torch.zeros(1, dim), torch.zeros(1, dim))
            seen = [None] * len(prototypes)
            for c in order:
                state = cell(p, name, prototypes[c:c + 1], state)
                seen[c] = state[0]
            total = total + torch.cat(seen)
        return total

    def scores(p, kind, queries, classes):
        embedded = embed(p, kind, queries)
        h = embedded
        if kind == "prototype-matching":
            c = torch.zeros_like(h)
            for _ in range(readings):
                read = torch.softmax(h @ classes.T, dim=1) @ classes
                both = torch.cat([h, read], dim=1)
                gates = embedded @ p["reader.input"].T + p["reader.bias"] + both @ p["reader.state"].T
                i, f, g, o = gates.chunk(4, dim=1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c) + embedded
        return p["scale"][0, 0] * normalise(h) @ normalise(classes).T

    def loss_of(p, kind, episode):
        means = []
        for place, one in enumerate(episode["classes"]):
            support = rows[one["class"]][one["examples"]]
            if kind != "prototypical":
                seeds = torch.stack([support[j % len(support)] for j in range(generated)])
                z = torch.tensor(episode["noise"][place * generated:(place + 1) * generated], dtype=torch.float64)
                imagined = normalise(seeds + layers(p, "hallucinator", torch.cat([seeds, z], dim=1), 3))
                support = torch.cat([support, imagined])
            means.append(embed(p, kind, support).mean(0))
        classes = context(p, kind, normalise(torch.stack(means)))
        queries = torch.cat([rows[one["class"]][one["queries"]] for one in episode["classes"]])
        labels = torch.cat([torch.full((len(one["queries"]),), i) for i, one in enumerate(episode["classes"])])
        return torch.nn.functional.cross_entropy(scores(p, kind, queries, classes), labels)

    def draw(shots):
        classes = []
        for c in rng.permutation(5)[:3]:
            order = rng.permutation(6).tolist()
            classes.append({"class": int(c), "examples": order[:shots], "queries": order[shots:shots + 2]})
        return {"classes": classes, "noise": rng.standard_normal((3 * generated, noise)).astype(np.float32)}

    steps = [[draw(1), draw(3)] for _ in range(3)]
    leaf = lambda: {n: torch.tensor(v.astype(np.float64), requires_grad=True) for n, v in start.items()}
    systems = {}
    for kind in ("prototypical", "hallucination", "prototype-matching"):
        p = leaf()
        optimiser = torch.optim.SGD([
            {"params": [v for n, v in p.items() if n != "scale"], "weight_decay": decay},
            {"params": [p["scale"]], "weight_decay": 0.0},
        ], lr=rate, momentum=momentum)
        first = None
        for episodes in steps:
            optimiser.zero_grad()
            loss = sum(loss_of(p, kind, episode) for episode in episodes) / len(episodes)
            loss.backward()
            used = {n: v.grad.clone() for n, v in p.items() if v.grad is not None}
            first = first or (loss.item(), used)
            print(f"  {kind}: loss {loss.item():.4f}")
            optimiser.step()
        systems[kind] = {"loss_f64": first[0], "gradient_f64": first[1],
                         "after_f64": {n: p[n] for n in first[1]}}
    relevance = rng.random(6).astype(np.float32)
    p = leaf()
    weights = torch.cat([torch.ones(2), torch.tensor(relevance.astype(np.float64))])[:, None]
    mixed = (weights * embed(p, "prototypical", torch.cat([rows[0][:2], rows[1]]))).sum(0) / weights.sum()
    plain = embed(p, "prototypical", rows[2]).mean(0)
    classes = normalise(torch.stack([mixed, plain]))
    write("episodic", "Systems that learn from episodes: loss and gradient of the first step and parameters after three steps of SGD (rate 0.05, "
                      "momentum 0.9, decay 5e-4 but for the scale); scores of set 3 by a prototypical network of two classes: two "
                      "clean rows of set 0 with the rows of set 1 by relevance, and set 2.",
          sizes={"dim": dim, "hidden": hidden, "noise": noise, "generated": generated, "readings": readings},
          sets=sets, start=start, steps=steps, systems=systems, relevance=relevance,
          scores_f64=scores(p, "prototypical", rows[3], classes))


def make_attention() -> None:
    """The attention weight generator and its second training stage, by autograd in float64."""
    rng = np.random.default_rng(11)
    n_base, dim, scale, rate, momentum, decay = 7, 8, 8.0, 0.1, 0.9, 5e-4
    centres = rng.standard_normal((n_base, dim))
    sets = [unit(centre + 0.7 * rng.standard_normal((6, dim))) for centre in centres]
    base = unit(centres + 0.2 * rng.standard_normal((n_base, dim)))
    start = {
        "query": np.eye(dim) + 0.1 * rng.standard_normal((dim, dim)),
        "keys": rng.standard_normal((n_base, dim)) * math.sqrt(2 / dim),
        "average": 1 + 0.1 * rng.standard_normal(dim),
        "attended": 1 + 0.1 * rng.standard_normal(dim),
        "gamma": np.array(10.0),
    }
    start = {name: value.astype(np.float32) for name, value in start.items()}
    features = [torch.tensor(rows, dtype=torch.float64) for rows in sets]
    weights = torch.tensor(base, dtype=torch.float64)
    weights = weights / weights.norm(dim=1, keepdim=True)
    features = [rows / rows.norm(dim=1, keepdim=True) for rows in features]

    def generate(p, rows, relevance, absent):
        """One class: rows n x d, their weights, and the base classes that attention must not see."""
        query = rows @ p["query"].T
        cosine = torch.nn.functional.normalize(query, dim=1) @ torch.nn.functional.normalize(p["keys"], dim=1).T
        logits = p["gamma"] * cosine
        logits[:, absent] = -math.inf
        brought = torch.softmax(logits, dim=1) @ weights
        share = (relevance / relevance.sum())[:, None]
        return p["average"] * (share * rows).sum(0) + p["attended"] * (share * brought).sum(0)

    def loss_of(p, episode):
        absent = [posing["class"] for posing in episode["posing"]]
        table = list(weights)
        for posing in episode["posing"]:
            rows = features[posing["class"]][posing["examples"]]
            ones = torch.ones(len(rows), dtype=torch.float64)
            table[posing["class"]] = torch.nn.functional.normalize(generate(p, rows, ones, absent), dim=0)
        x = torch.stack([features[c][row] for c, row in episode["queries"]])
        label = torch.tensor([c for c, _ in episode["queries"]])
        return torch.nn.functional.cross_entropy(scale * x @ torch.stack(table).T, label)

    def draw(shots):
        classes = rng.permutation(n_base)
        posing = [{"class": int(c), "examples": rng.permutation(6)[:shots].tolist()} for c in classes[:2]]
        queries = [(p["class"], row) for p in posing for row in range(6) if row not in p["examples"]]
        return {"posing": posing, "queries": queries + [(int(c), int(rng.integers(6))) for c in classes[2:]]}

    steps = [[draw(1), draw(3)] for _ in range(5)]
    p = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in start.items()}
    optimiser = torch.optim.SGD(list(p.values()), lr=rate, momentum=momentum, weight_decay=decay)
    relevance = rng.random(6).astype(np.float32)
    rows = torch.cat([features[0][:2], features[1]])
    both = torch.cat([torch.ones(2, dtype=torch.float64), torch.tensor(relevance, dtype=torch.float64)])
    generated = torch.nn.functional.normalize(generate(p, rows, both, []), dim=0)
    first = None
    for episodes in steps:
        optimiser.zero_grad()
        loss = sum(loss_of(p, episode) for episode in episodes) / len(episodes)
        loss.backward()
        first = first or (loss.item(), {name: value.grad.clone() for name, value in p.items()})
        print(f"  loss {loss.item():.4f}")
        optimiser.step()
    write("attention", "The attention weight generator: loss and gradient of the first step, parameters after all steps of "
                       "SGD (rate 0.1, momentum 0.9, decay 5e-4, scale 8), and the weight generated at the start from two "
                       "clean rows of set 0 and the rows of set 1 by relevance.",
          dim=dim, base=base, sets=sets, start=start, steps=steps, loss_f64=first[0], gradient_f64=first[1],
          after_f64=p, relevance=relevance, generated_f64=generated)


MAKERS = {"attention": make_attention, "multinomial": make_multinomial, "diffusion": make_diffusion, "episodic": make_episodic}


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
