#!/usr/bin/env python3
"""Writes prototypical.json: the loss of prototypical networks on given features, and its gradient, by autograd in float64.

Made with Python 3.11, numpy 2.4.6 and torch 2.15.0 on a CPU.
"""

import json
from pathlib import Path

import numpy as np
import torch

SCALE = 10.0


def case(ways, shots, queries, distance, dim, seed):
    features = np.random.default_rng(seed).standard_normal((ways, shots + queries, dim)).astype(np.float32) * 0.6
    x = torch.tensor(features, dtype=torch.float64, requires_grad=True)
    prototypes, asked = x[:, :shots].mean(1), x[:, shots:].reshape(-1, dim)
    if distance == "euclidean":
        scores = -SCALE / dim * torch.cdist(asked, prototypes) ** 2
    else:
        normalise = torch.nn.functional.normalize
        scores = SCALE * normalise(asked, dim=1) @ normalise(prototypes, dim=1).T
    labels = torch.arange(ways).repeat_interleave(queries)
    loss = torch.nn.functional.cross_entropy(scores, labels)
    loss.backward()
    numbers = lambda values: [float(f"{v:.9g}") for v in np.asarray(values).ravel()]
    return {
        "rule": {"ways": ways, "shots": shots, "queries": queries, "distance": distance},
        "dim": dim,
        "features": numbers(features),
        "loss_f64": loss.item(),
        "correct": int((scores.argmax(1) == labels).sum()),
        "gradient_f64": numbers(x.grad),
    }


cases = [case(3, 2, 4, "euclidean", 6, 1), case(3, 2, 4, "cosine", 6, 2), case(5, 1, 3, "euclidean", 4, 3)]
lines = ",\n  ".join(json.dumps(c, separators=(",", ":")) for c in cases)
about = "Features come class by class, the examples of a prototype first. Made by make_prototypical.py."
text = f'{{\n"about": {json.dumps(about)},\n"cases": [\n  {lines}\n]\n}}\n'
Path(__file__).with_name("prototypical.json").write_text(text)
