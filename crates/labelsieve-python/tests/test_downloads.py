"""From metadata to photos, as in docs/matching.md: match, img2dataset, embed, score."""

import bz2
import functools
import http.server
import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import REPOSITORY

import labelsieve

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

CLASSES = '[[class]]\nid = "church"\nnames = ["church"]\n\n[[class]]\nid = "crane"\nnames = ["crane"]\n'
N_PHOTOS, GONE, BROKEN = 24, 5, 8


def shell_blocks():
    """The commands of "From metadata to photos", block by block."""
    page = (REPOSITORY / "docs/matching.md").read_text()
    section = page.split("## From metadata to photos\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)


def photo(kind, number):
    """A drawing with noise: stripes up and down for a church, across for a crane."""
    noise = np.random.default_rng(number).integers(0, 60, (96, 96, 3))
    stripes = np.arange(96) // 8 % 2 * 180
    stripes = stripes[None, :, None] if kind == "church" else stripes[:, None, None]
    pixels = noise + stripes
    data = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(data, "JPEG")
    return data.getvalue()


def kind(number):
    return "church" if number % 2 else "crane"


@pytest.fixture
def web(tmp_path):
    """A web server with photos; number 5 is gone, and number 8 is no photo."""
    folder = tmp_path / "web"
    folder.mkdir()
    for number in range(N_PHOTOS):
        if number != GONE:
            (folder / f"{number}.jpg").write_bytes(b"no photo" if number == BROKEN else photo(kind(number), number))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def folder(tmp_path):
    """Classes, and verified photos of each."""
    folder = tmp_path / "work"
    for name in ("church", "crane"):
        (folder / "clean" / name).mkdir(parents=True)
        for number in (100, 101):
            (folder / "clean" / name / f"{number}.jpg").write_bytes(photo(name, number))
    (folder / "classes.toml").write_text(CLASSES)
    return folder


def run(commands, folder):
    """Runs commands as a user would type them; returns what each printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {**os.environ, "PATH": path, "NO_ALBUMENTATIONS_UPDATE": "1"}
    printed = []
    for line in commands.replace("\\\n", " ").splitlines():
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=settings, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        printed.append(done.stdout + done.stderr)
    return printed


def check(folder, printed, ids):
    """Every photo that could be downloaded is scored under its own id, and the two others are counted."""
    listed = parquet.read_table(folder / "urls.parquet").to_pydict()
    assert listed["id"] == listed["key"] == ids
    embedded = parquet.read_table(folder / "photos.parquet", columns=["id"])["id"].to_pylist()
    readable = [id for number, id in enumerate(ids) if number not in (GONE, BROKEN)]
    assert sorted(embedded) == sorted(readable)
    assert "skipping 2 candidates without features in `photos.parquet`" in printed[-1], printed[-1]
    relevance = labelsieve.read_relevance(folder / "relevance.parquet")
    scored = [id for id, clean in zip(relevance["id"], relevance["is_clean"]) if not clean]
    assert sorted(scored) == sorted(readable)
    of_class = dict(zip(relevance["id"], relevance["class"]))
    assert all(of_class[id] == kind(number) for number, id in enumerate(ids) if id in scored)


def yfcc_line(number, title, url, marker=0):
    fields = ["x"] * 25
    fields[1], fields[8], fields[9], fields[10], fields[16], fields[24] = f"77{number:04}", title, "", "", url, str(marker)
    return "\t".join(fields)


def test_yfcc100m_metadata_becomes_scored_photos(folder, web):
    pytest.importorskip("img2dataset", reason="img2dataset is not installed")
    labelsieve.embed_files(None, folder / "clean", folder / "clean.parquet")
    lines = [yfcc_line(number, f"a+{kind(number)}%21", f"{web}/{number}.jpg") for number in range(N_PHOTOS)]
    lines += [yfcc_line(900, "a+dog", f"{web}/900.jpg"), yfcc_line(901, "crane", f"{web}/film.mp4", marker=1)]
    lines += [lines[3]]  # listed twice
    (folder / "yfcc100m_dataset-0.bz2").write_bytes(bz2.compress("\n".join(lines).encode()))
    recipe, _ = shell_blocks()
    printed = run(recipe, folder)
    assert f"{N_PHOTOS} photos to download written to `urls.parquet`" in printed[0], printed[0]
    captions = parquet.read_table(folder / "urls.parquet")["caption"].to_pylist()
    assert captions[0] == "a crane!"
    check(folder, printed, [f"77{number:04}" for number in range(N_PHOTOS)])


def test_laion_metadata_becomes_scored_photos(folder, web):
    pytest.importorskip("img2dataset", reason="img2dataset is not installed")
    labelsieve.embed_files(None, folder / "clean", folder / "clean.parquet")
    (folder / "laion").mkdir()
    numbers = list(range(N_PHOTOS))
    for part, rows in enumerate((numbers[:10], numbers[10:])):
        table = {
            "SAMPLE_ID": pyarrow.array([9_000_000_000 + number for number in rows], pyarrow.int64()),
            "URL": [f"{web}/{number}.jpg" for number in rows],
            "TEXT": [f"the {kind(number)}, {number}" for number in rows],
            "similarity": [0.3] * len(rows),
        }
        parquet.write_table(pyarrow.table(table), folder / f"laion/part-{part}.parquet")
    first, laion = shell_blocks()
    rest = first.replace("\\\n", " ").split("\n", 1)[1]
    printed = run(laion + rest, folder)
    check(folder, printed, [str(9_000_000_000 + number) for number in range(N_PHOTOS)])


def test_columns_lists_and_shards_from_python(folder):
    rows = "".join(f"{number},a {kind(number)},http://a/{number},{1900 + number}\n" for number in range(40))
    (folder / "a.csv").write_text("id,title,link,year\n" + rows)
    options = {"keep": "year", "download_list": folder / "urls.parquet", "url_column": "link"}
    whole = labelsieve.match_files(folder / "classes.toml", folder / "a.csv", folder / "whole.parquet", **options)
    assert whole["n_candidates"] == 40 and whole["photos"] == {"n_photos": 40, "n_without_url": 0}
    assert parquet.read_table(folder / "whole.parquet")["year"].to_pylist()[:2] == ["1900", "1901"]
    for shard in ("0/3", (1, 3), (2, 3)):
        index = int(shard[0])
        options["download_list"] = folder / f"urls-{index}.parquet"
        for was_complete in (False, True):
            part = labelsieve.match_files(folder / "classes.toml", folder / "a.csv", folder / f"{index}.parquet", shard=shard, **options)
            assert (part["part"]["index"], part["part"]["of"], part["part"]["was_complete"]) == (index, 3, was_complete)
    for name, parts in (("whole", "{}"), ("urls", "urls-{}")):
        labelsieve.merge_files([folder / f"{parts.format(index)}.parquet" for index in range(3)], folder / "merged.parquet")
        assert (folder / "merged.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()
    with pytest.raises(ValueError, match="url_column: expected none without a download_list"):
        labelsieve.match_files(folder / "classes.toml", folder / "a.csv", folder / "b.parquet", url_column="link")
    with pytest.raises(ValueError, match="expected `years`, found id, title, link, year"):
        labelsieve.match_files(folder / "classes.toml", folder / "a.csv", folder / "b.parquet", keep="years")
