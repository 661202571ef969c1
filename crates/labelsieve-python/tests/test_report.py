"""`labelsieve.report` from a table, a relevance file and a run directory."""

import shutil

import pytest

import labelsieve


@pytest.fixture(scope="module")
def table(sample):
    fitted = labelsieve.Cleaner().fit(sample.X, sample.y, is_clean=sample.is_clean)
    return fitted.to_table(ids=[f"example-{i}" for i in range(len(sample.y))])


def test_a_table_a_file_and_a_run_give_the_same_galleries(table, tmp_path):
    labelsieve.write_relevance(tmp_path / "relevance.parquet", table)
    (tmp_path / "run.json").write_text('{"format": 1, "title": "Six <classes>"}')
    held = {}
    for name, source in [("table", table), ("file", tmp_path / "relevance.parquet"), ("run", tmp_path)]:
        held[name] = labelsieve.report(source, tmp_path / f"{name}.html", per_class=8)
        text = (tmp_path / f"{name}.html").read_text()
        assert text.startswith("<!") and "example-" in text
    assert held["table"] == held["file"] == held["run"]
    assert held["run"]["classes"] == 6 and held["run"]["pictures"] == 0 and held["run"]["unreadable"] == {}
    assert "Six &lt;classes&gt;" in (tmp_path / "run.html").read_text()


def test_pictures_and_truth_are_taken_where_they_are(table, sample, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "photos").mkdir()
    image.new("RGB", (32, 32), "red").save(tmp_path / "first.png")
    for name in table["id"]:
        shutil.copy(tmp_path / "first.png", tmp_path / "photos" / f"{name}.png")
    truth = pandas.DataFrame({"id": table["id"], "class": table["class"], "relevant": sample.truth})
    truth[~sample.is_clean].to_parquet(tmp_path / "truth.parquet")
    plain = labelsieve.report(table, tmp_path / "plain.html")
    files = {"truth": tmp_path / "truth.parquet", "images": tmp_path / "photos"}
    full = labelsieve.report(table, tmp_path / "r.html", **files, per_class=len(sample.y))
    assert full["pictures"] == full["examples"] > 0 == plain["pictures"]
    assert full["figures"] > plain["figures"], "truth brings figures of its own"


def test_decisions_are_marked_as_their_file_has_them(table, sample, tmp_path):
    first, second = [i for i, is_clean in enumerate(sample.is_clean) if not is_clean][:2]
    rows = [f"{table['id'][i]},{table['class'][i]},{word}" for i, word in [(first, "accept"), (second, "reject")]]
    (tmp_path / "d.csv").write_text("\n".join(["id,class,decision", *rows, ""]))
    held = labelsieve.report(table, tmp_path / "r.html", decisions=tmp_path / "d.csv")
    assert held["decisions"] == 2
    assert "<dt>rejected</dt><dd>1</dd>" in (tmp_path / "r.html").read_text()
    assert labelsieve.report(table, tmp_path / "r.html")["decisions"] == 0
    (tmp_path / "other.csv").write_text("id,class,decision\nnobody,nothing,accept\n")
    with pytest.raises(ValueError, match="expected candidates of"):
        labelsieve.report(table, tmp_path / "s.html", decisions=tmp_path / "other.csv")


def test_what_is_no_run_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match="run.json"):
        labelsieve.report(tmp_path, tmp_path / "r.html")
    with pytest.raises(ValueError, match="table: expected a column `id`"):
        labelsieve.report({"class": ["a"]}, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []
