"""Labelsieve's random numbers by position, in plain Python: enough to start a network of one's own from the same weights."""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E37_79B9_7F4A_7C15


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
    return x ^ (x >> 31)


class Stream:
    def __init__(self, seed):
        self.key = mix((seed + GOLDEN) & MASK)

    def branch(self, label):
        other = Stream.__new__(Stream)
        other.key = mix(self.key ^ mix((label + GOLDEN) & MASK))
        return other

    def uniform(self, count):
        bits = (mix((self.key + position * GOLDEN) & MASK) for position in range(count))
        return np.array([(b >> 40) / (1 << 24) for b in bits], np.float32)
