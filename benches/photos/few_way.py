#!/usr/bin/env python3
"""Why cosine rows lose in the 5-way protocol: the same classifier in PyTorch, at two learning rates.

    python3 benches/photos/few_way.py configs/tiny.toml --data DIR --features F.parquet --run RUN

Draws trials of five reported novel classes with one clean photo each. The weights of the candidates come from the package
labelsieve (gcn, λ = 0.01) and from the truth; RUN gives the candidates. Learns eq. (6) from the prototypes in ten steps over all examples, with
momentum 0.9 and the rate annealed along half a cosine to a hundredth, and prints the accuracy of both classifiers.
"""

import argparse
import math
import tomllib
from pathlib import Path

import labelsieve
import numpy as np
import torch

from reference import candidates, novel_photos, read_features, unit

STEPS, QUERIES = 10, 15


def learn(rows, labels, relevance, start, rate, scale):
    share = relevance / torch.zeros(len(start)).index_add(0, labels, relevance)[labels] / len(start)
    w = start.clone().requires_grad_()
    optimiser = torch.optim.SGD([w], lr=rate, momentum=0.9)
    for step in range(STEPS):
        annealed = 0.01 + 0.495 * (1 + math.cos(math.pi * step / (STEPS - 1)))
        optimiser.param_groups[0]["lr"] = rate * annealed
        optimiser.zero_grad()
        logits = scale * rows @ torch.nn.functional.normalize(w, dim=1).T
        (share * torch.nn.functional.cross_entropy(logits, labels, reduction="none")).sum().backward()
        optimiser.step()
    return torch.nn.functional.normalize(w.detach(), dim=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--scale", type=float, default=17)
    options = parser.parse_args()
    config = tomllib.loads(options.config.read_text())
    photos, first = config["photos"], config.get("clean", {}).get("first")
    ids, features = read_features(options.features)
    place = {i: row for row, i in enumerate(ids)}
    classes = novel_photos(photos, options.data, place)
    pools = candidates(next(options.run.glob("candidates-*.parquet")))
    report = [c for c in sorted(classes)[1::2] if c in pools]
    random, reached = np.random.default_rng(0), {}
    for trial in range(options.trials):
        rows, labels, weights, queries = [], [], {"gcn": [], "oracle": []}, []
        for way, c in enumerate(random.choice(report, 5, replace=False)):
            clean = random.choice(classes[c][photos["train"]][:first], 1)
            noisy, truth = [place[i] for i, _ in pools[c]], [float(relevant) for _, relevant in pools[c]]
            gcn = labelsieve.relevance(features[clean], features[noisy], "gcn", 0.01, seed=trial, device="cpu")
            rows += [*clean, *noisy]
            labels += [way] * (1 + len(noisy))
            weights["gcn"] += [1.0, *gcn]
            weights["oracle"] += [1.0, *truth]
            queries += list(random.choice(classes[c][photos["test"]], QUERIES, replace=False))
        x, y = torch.from_numpy(features[rows]), torch.tensor(labels)
        right = np.repeat(np.arange(5), QUERIES)
        for source, relevance in weights.items():
            r = torch.tensor(relevance, dtype=torch.float32)
            prototypes = torch.from_numpy(unit(torch.zeros(5, x.shape[1]).index_add(0, y, r[:, None] * x).numpy()))
            learned = {"prototypes": prototypes}
            learned |= {f"cosine, rate {rate}": learn(x, y, r, prototypes, rate, options.scale) for rate in (0.1, 0.01)}
            for name, w in learned.items():
                guessed = (features[queries] @ w.numpy().T).argmax(1)
                reached.setdefault(f"{source}, {name}", []).append((guessed == right).mean())
    for name, values in reached.items():
        print(f"{name:24} {100 * np.mean(values):.1f}")


if __name__ == "__main__":
    main()
