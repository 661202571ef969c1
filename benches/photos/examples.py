#!/usr/bin/env python3
"""When does a cosine classifier beat prototypes? With right labels alone, by number of examples per class.

    python3 benches/photos/examples.py configs/tiny.toml --data DIR --features F.parquet

Draws n training photos of each novel class, all of them right, makes prototypes (eq. 5), and learns a cosine classifier
(eq. 6) from them in PyTorch: SGD with momentum 0.9, learning rate 0.1 to 0.001 along half a cosine, s = 10. Batch size and
epochs are chosen on the novel classes at even positions of the alphabet, accuracy is that of the others. No candidate,
no relevance and no code of ours takes part: what is left is the classifier, the features and the number of examples.
"""

import argparse
import math
import tomllib
from pathlib import Path

import numpy as np
import torch

from reference import novel_photos, read_features, unit

COUNTS = (1, 5, 20, 50, 100, 200, 300)
DRAWS = 3


def learn(rows, labels, weights, batch, epochs, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    w = weights.clone().requires_grad_()
    optimiser = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    steps = epochs * math.ceil(len(rows) / batch)
    step = 0
    for _ in range(epochs):
        for chosen in torch.randperm(len(rows), generator=generator).split(batch):
            optimiser.param_groups[0]["lr"] = 0.001 + 0.0495 * (1 + math.cos(math.pi * step / max(1, steps - 1)))
            optimiser.zero_grad()
            logits = scale * rows[chosen] @ torch.nn.functional.normalize(w, dim=1).T
            # eq. (6) sums the means of all classes: K times the mean of balanced classes
            (len(weights) * torch.nn.functional.cross_entropy(logits, labels[chosen])).backward()
            optimiser.step()
            step += 1
    return w.detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=10)
    options = parser.parse_args()
    config = tomllib.loads(options.config.read_text())["photos"]
    ids, features = read_features(options.features)
    place = {i: row for row, i in enumerate(ids)}
    photos = novel_photos(config, options.data, place)
    names = sorted(photos)

    def reach(classes, n, draw, setting):
        """Top-1 of prototypes, or of a cosine classifier that starts at them."""
        random = np.random.default_rng(draw)
        chosen = [random.permutation(photos[c][config["train"]])[:n] for c in classes]
        rows = torch.from_numpy(features[np.concatenate(chosen)])
        labels = torch.tensor([i for i, c in enumerate(chosen) for _ in c])
        weights = torch.from_numpy(unit(np.array([features[c].mean(0) for c in chosen])))
        if setting:
            weights = learn(rows, labels, weights, *setting, options.scale, draw)
        tests = [photos[c][config["test"]] for c in classes]
        x, y = features[np.concatenate(tests)], np.repeat(np.arange(len(tests)), [len(t) for t in tests])
        scores = x @ torch.nn.functional.normalize(weights, dim=1).numpy().T
        return 100 * (scores.argmax(1) == y).mean()

    settings = [(batch, epochs) for batch in (512, 2048, 8192) for epochs in (10, 50)]
    print("examples  prototypes  cosine  gain  batch × epochs")
    for n in COUNTS:
        enough = [c for c in names if len(photos[c][config["train"]]) >= n]
        tune, report = enough[::2], enough[1::2]
        if len(report) < 5:
            break
        best = max(settings, key=lambda setting: reach(tune, n, 0, setting))
        prototypes = np.mean([reach(report, n, draw, None) for draw in range(DRAWS)])
        cosine = np.mean([reach(report, n, draw, best) for draw in range(DRAWS)])
        print(f"{n:8}  {prototypes:10.1f}  {cosine:6.1f}  {cosine - prototypes:+4.1f}  {best[0]} × {best[1]}", flush=True)


if __name__ == "__main__":
    main()
