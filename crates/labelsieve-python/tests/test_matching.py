"""`labelsieve.match` on what users have: lists, data frames, Arrow tables."""

import numpy as np
import pytest

from labelsieve import match

TITLES = ["A black widow", None, "Black Widow (2021)", "my cats", "concatenate", float("nan")]


def found(table):
    return list(zip(table["row"].tolist(), table["class"]))


def test_rules_differ_as_they_say():
    classes = ["black widow", "cat"]
    assert found(match(TITLES, classes)) == [(0, "black widow"), (2, "black widow")]
    assert found(match(TITLES, classes, "plural"))[-1] == (3, "cat")
    assert (4, "cat") in found(match(TITLES, classes, "substring"))
    assert found(match(["a widow"], classes, rule="any_word")) == [(0, "black widow")]
    with pytest.raises(ValueError, match="rule: expected phrase, plural, any-word or substring, found `regex`"):
        match(TITLES, classes, rule="regex")


def test_tables_of_every_kind_give_the_same():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    columns = {
        "key": ["p1", "p2", "p3"],
        "title": ["untitled", None, "a church"],
        "tags": [["church building", "sky"], [], None],
        "other": [1, 2, 3],
    }
    classes = {"n03028079": ["church", "church building"]}
    expected = [("p1", "n03028079", "church", "tags"), ("p3", "n03028079", "church", "title")]
    for table in [columns, pandas.DataFrame(columns), pyarrow.table(columns)]:
        hits = match(table, classes)
        assert list(zip(*(hits[name] for name in ("id", "class", "matched_name", "field")))) == expected
    for series in [pandas.Series(columns["title"]), pyarrow.array(columns["title"]), np.array(columns["title"], object)]:
        assert found(match(series, classes)) == [(2, "n03028079")]
    hits = match(columns, classes, text_columns=["tags"], id_column="other")
    assert hits["id"].tolist() == ["1"]
    assert pandas.DataFrame(hits).shape == (1, 5)


def test_classes_come_as_names_mappings_or_files(tmp_path):
    texts = ["a crane fly", "two cranes at work", "crane"]
    entry = {"id": "c", "names": "crane", "exclude": ["crane fly"]}
    for classes in [[entry], {"c": {"names": ["crane"], "exclude": "crane fly"}}]:
        assert found(match(texts, classes)) == [(2, "c")]
    (tmp_path / "classes.toml").write_text('[[class]]\nid = "c"\nnames = ["crane"]\nexclude = ["crane fly"]\n')
    assert found(match(texts, tmp_path / "classes.toml", "plural")) == [(1, "c"), (2, "c")]
    for classes, message in [
        ([], "classes: expected at least one, found none"),
        (["a", "a"], "class `a`: expected a unique id, found a duplicate"),
        ([{"name": "x"}], "classes: expected entries with id, names, display_name and exclude, found name"),
    ]:
        with pytest.raises(ValueError, match=message):
            match(texts, classes)


def test_odd_names_are_warned_about():
    with pytest.warns(UserWarning, match="`cat` names 2 classes: a, b"):
        match(["cat"], {"a": ["cat"], "b": ["cat"]})


def test_bad_texts_are_named_by_column_and_row():
    with pytest.raises(ValueError, match="column `caption`, row 1: expected text, found int"):
        match(["a", 3], ["a"])
    with pytest.raises(TypeError, match="found one text\nhint: put it in a list"):
        match("a cat", ["cat"])
    with pytest.raises(ValueError, match="captions: expected a column title, .*found words\nhint: name it with text_columns"):
        match({"words": ["a"]}, ["a"])
    with pytest.raises(ValueError, match="captions: expected a column `title`, found words"):
        match({"words": ["a"]}, ["a"], text_columns=["title"])


def test_many_texts_come_in_order_whatever_the_threads():
    texts = [f"text {i} about {'cats' if i % 3 == 0 else 'dogs'}" for i in range(20_000)]
    hits = match(texts, ["cat", "dog"], "plural")
    assert hits["row"].tolist() == list(range(20_000))
    assert hits["class"][::3].tolist() == ["cat"] * len(texts[::3])
