"""A YFCC100M-like file and class names: `generate.py FOLDER ROWS` writes yfcc.tsv, classes.csv and names.txt.

Words follow Zipf's law over 60,000 made-up words. Lengths follow what the YFCC100M shows: most titles have one to five
words or are a camera's file name, a third of the photos have a description (a tenth of those with HTML), two thirds have
tags. One row in twelve has letters beyond ASCII, one in 125 is a video. The same call writes the same bytes.
"""

import itertools
import random
import sys
from pathlib import Path
from urllib.parse import quote_plus

N_WORDS, N_CLASSES, NAMES_PER_CLASS = 60_000, 1_000, 3
FOREIGN = ["café", "été", "niño", "München", "straße", "Ελλάδα", "Москва", "собака", "東京", "桜", "猫", "서울", "قطة"]
DEVICE = "Canon+EOS+5D+Mark+II"
LINK = '<a href="http://www.flickr.com/photos/{0}/" rel="nofollow">{0}</a> &quot;{1}&quot;'


def vocabulary(rng):
    syllables = [c + v for c in "b c d f g h k l m n p r s t v w st tr ch".split() for v in "a e i o u ea ou".split()]
    endings = ["", "", "n", "r", "s", "t", "ng", "st"]
    words = dict.fromkeys(
        "".join(rng.choices(syllables, k=rng.choice([1, 1, 2, 2, 2, 3]))) + rng.choice(endings) for _ in range(N_WORDS * 4)
    )
    return list(itertools.islice(words, N_WORDS))


def class_names(rng, words):
    """Names of one to three words from the middle of the vocabulary; none that occurs in the fixed part of every line,
    where rg would find it at once."""
    nouns = [word for word in words[800:20_000] if len(word) > 3 and word not in DEVICE.lower()]
    names = dict.fromkeys(" ".join(rng.choices(nouns, k=rng.choice([1, 1, 2, 2, 3]))) for _ in range(N_CLASSES * 5))
    names = list(itertools.islice(names, N_CLASSES * NAMES_PER_CLASS))
    return [names[i : i + NAMES_PER_CLASS] for i in range(0, len(names), NAMES_PER_CLASS)]


class Texts:
    """Draws words in bulk, which is most of the work, and mentions a class name now and then."""

    def __init__(self, rng, words, names):
        self.rng, self.words, self.names = rng, words, names
        self.weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
        self.drawn = iter(())

    def take(self, n):
        words = list(itertools.islice(self.drawn, n))
        if len(words) < n:
            self.drawn = iter(self.rng.choices(self.words, cum_weights=self.weights, k=200_000))
            words = list(itertools.islice(self.drawn, n))
        if self.rng.random() < 0.02:
            words.append(self.rng.choice(self.names))
        return words

    def title(self):
        kind = self.rng.random()
        if kind < 0.25:
            return f"IMG_{self.rng.randrange(10_000):04}"
        if kind < 0.30:
            return ""
        return " ".join(self.take(self.rng.choice([1, 2, 2, 3, 3, 4, 5, 8]))).title()

    def description(self):
        if self.rng.random() > 0.34:
            return ""
        words = self.take(min(300, int(self.rng.lognormvariate(2.8, 1.0)) + 1))
        if self.rng.random() < 0.10:
            words.insert(len(words) // 2, LINK.format(*self.take(2)[:2]))
        return " ".join(words).capitalize() + "."

    def tags(self):
        if self.rng.random() > 0.68:
            return []
        return self.take(min(40, int(self.rng.lognormvariate(1.6, 0.7)) + 1))


def row(rng, texts, number):
    title, description, tags = texts.title(), texts.description(), texts.tags()
    if rng.random() < 1 / 12:
        title += " " + rng.choice(FOREIGN)
        tags.append(rng.choice(FOREIGN))
    photo, user = 2_000_000_000 + number * 7, f"{rng.randrange(10**8):08}@N0{rng.randrange(9)}"
    secret, server = f"{rng.randrange(16**10):010x}", rng.randrange(1, 9000)
    return "\t".join([
        str(number), str(photo), f"{rng.randrange(16**32):032x}", user, quote_plus(texts.words[number % 5000]),
        "2012-06-03 14:02:11.0", "1338764531", DEVICE, quote_plus(title), quote_plus(description),
        ",".join(map(quote_plus, tags)), "", "-122.418", "37.775", "16",
        f"http://www.flickr.com/photos/{user}/{photo}/",
        f"http://farm{server % 9}.staticflickr.com/{server}/{photo}_{secret}.jpg",
        "Attribution-NonCommercial-ShareAlike License", "http://creativecommons.org/licenses/by-nc-sa/2.0/",
        str(server), str(server % 9), secret, secret[::-1], "jpg", "1" if number % 125 == 7 else "0",
    ])  # fmt: skip


def main(folder, n_rows):
    rng = random.Random(3)
    words = vocabulary(rng)
    classes = class_names(rng, words)
    names = [name for names in classes for name in names]
    (folder / "names.txt").write_text("\n".join(names) + "\n")
    lines = [f"c{index},{'|'.join(names)}" for index, names in enumerate(classes)]
    (folder / "classes.csv").write_text("id,names\n" + "\n".join(lines) + "\n")
    texts = Texts(rng, words, names)
    partial = folder / "yfcc.tsv.partial"
    with partial.open("w") as file:
        for number in range(n_rows):
            file.write(row(rng, texts, number) + "\n")
    partial.rename(folder / "yfcc.tsv")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
