"""Which icon goes where: clean examples, test examples, or the noisy pool."""

from collections import defaultdict

from iconify import digest

MOST_CLEAN = 10
MOST_TEST = 16
"""Families, not icons: a family has up to two."""


def assign_parts(truth):
    """id → `clean`, `test` or `pool`, for labels id → class → row.

    A family of drawings stays together. Clean and test examples come from families of which every member shows the same class
    beyond doubt: about a fifth and a quarter of them. A clean family gives one icon and the others are left out. Everything
    else is the pool.
    """
    members = defaultdict(list)
    for icon_id, rows in truth.items():
        members[next(iter(rows.values()))["family"]].append(icon_id)

    beyond_doubt = defaultdict(list)
    for family, ids in members.items():
        shown = {only_class(truth[i]) for i in ids}
        if len(shown) == 1 and shown != {None}:
            beyond_doubt[shown.pop()].append(family)

    parts = {i: "pool" for i in truth}
    for name, families in beyond_doubt.items():
        families.sort(key=lambda family: digest("part", name, family))
        n_clean = min(MOST_CLEAN, max(5, len(families) // 5))
        n_test = min(MOST_TEST, max(5, len(families) // 4))
        for family in families[:n_clean]:
            first, *others = sorted(members[family], key=lambda i: digest("clean", i))
            parts[first] = "clean"
            for icon_id in others:
                del parts[icon_id]
        for family in families[n_clean : n_clean + n_test]:
            parts.update((icon_id, "test") for icon_id in members[family])
    return parts


def only_class(rows):
    """The one class that an icon shows, or None if it shows none, or several, or somebody had doubts."""
    shown = [name for name, row in rows.items() if row["relevant"] == "1"]
    doubted = any(row["note"] for row in rows.values())
    return shown[0] if len(shown) == 1 and not doubted else None
