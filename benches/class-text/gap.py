#!/usr/bin/env python3
"""The value of a text as a clean example, on generated features with a gap between photos and texts like CLIP's.

    pip install .            # labelsieve
    python benches/class-text/gap.py

Photos share one direction and texts another, so that two photos of different classes have a cosine of about 0.5, a photo and the text of
its class 0.23, and of another class 0.14. Of 300 candidates, 40 % are of the class. Prints the average precision of their relevance.
"""

import labelsieve
import numpy as np

DIM, DRAWS, CANDIDATES, SHARE, CLASSES = 256, 12, 300, 0.4, 40
rng = np.random.default_rng(0)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def draw(wrong):
    """A class in its world: a maker of its photos, candidates, which are right, the texts of all classes (its own first)."""
    photo, text = unit(rng.normal(size=(2, DIM)))
    text = unit(text + 0.25 * photo)
    classes = unit(rng.normal(size=(CLASSES, DIM)))

    def photos(of):
        noise = unit(rng.normal(size=(len(of), DIM)))
        return unit(np.sqrt(0.5) * photo + np.sqrt(0.07) * classes[of] + np.sqrt(0.43) * noise)

    others = rng.choice(np.arange(1, 1 + wrong), CANDIDATES)
    of = np.where(rng.random(CANDIDATES) < SHARE, 0, others)
    texts = unit(np.sqrt(0.7) * text + np.sqrt(0.3) * unit(0.6 * classes + 0.8 * unit(rng.normal(size=classes.shape))))
    return photos, photos(of), of == 0, texts


def average_precision(scores, right):
    found = right[np.argsort(-scores, kind="stable")]
    return (np.cumsum(found) / np.arange(1, len(found) + 1))[found].mean()


def nearest(candidates, text, n=5):
    return unit(candidates[np.argsort(-candidates @ text)[:n]].mean(0))


ROWS = {
    "one clean photo": lambda photos, candidates, texts: photos([0]),
    "five clean photos": lambda photos, candidates, texts: photos([0] * 5),
    "the text as it is": lambda photos, candidates, texts: texts[:1],
    "the text, moved from the mean text to the mean photo": lambda photos, candidates, texts: unit(
        texts[:1] - texts.mean(0) + candidates.mean(0)
    ),
    "the mean of the 5 photos nearest to the text": lambda photos, candidates, texts: nearest(candidates, texts[0])[None],
    "the text and one clean photo": lambda photos, candidates, texts: np.concatenate([texts[:1], photos([0])]),
    "the text and five clean photos": lambda photos, candidates, texts: np.concatenate([texts[:1], photos([0] * 5)]),
}


def main():
    worlds = {"two other classes": 2, "39 other classes": CLASSES - 1}
    print("| clean examples | " + " | ".join(worlds) + " |\n|---|" + "---|" * len(worlds))
    for name, clean in ROWS.items():
        cells = []
        for wrong in worlds.values():
            found = []
            for _ in range(DRAWS):
                photos, candidates, right, texts = draw(wrong)
                rows = [np.asarray(part, np.float32) for part in (clean(photos, candidates, texts), candidates)]
                found.append(average_precision(np.asarray(labelsieve.relevance(*rows)), right))
            cells.append(f"{np.mean(found):.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
