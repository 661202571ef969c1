"""Files on object stores, against a server of S3 that runs here, and on disks."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from test_ray import TINY, captions, tars

import labelsieve
import labelsieve.ray as on_ray
from labelsieve.ray._scratch import scratch
from labelsieve.ray._storage import Storage, basename, ending, join, normalized

KEYS = {"key": "test", "secret": "test"}


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """A bucket on moto's server, and what it is reached with."""
    pytest.importorskip("moto.server", reason="moto is not installed (pip install 'moto[server]')")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = open(tmp_path_factory.mktemp("moto") / "log", "wb")
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url).close()
            break
        except OSError:
            assert server.poll() is None and time.monotonic() < end
            time.sleep(0.1)
    options = {**KEYS, "endpoint_url": url}
    s3fs.S3FileSystem(**options).mkdir("bucket")
    yield Storage(options)
    server.terminate()
    server.wait()
    log.close()


def put(storage, folder, *names):
    for name in names:
        storage.put(str(folder / name), f"s3://bucket/{name}")
    return [f"s3://bucket/{name}" for name in names]


def fetched(storage, url, folder):
    with open(storage.fetch(url, str(folder / "fetched")), "rb") as file:
        return file.read()


def test_clean_and_train_go_from_s3_to_s3(nodes, s3, examples, tmp_path):
    clean, noisy, candidates = put(s3, examples.folder, "clean.parquet", "noisy.parquet", "candidates.parquet")
    settings = on_ray.Settings(storage_options=s3.options)
    scored = on_ray.score(clean, noisy, "s3://bucket/out/r.parquet", bins=3, seed=5, settings=settings)
    assert fetched(s3, "s3://bucket/out/r.parquet", tmp_path) == examples.bytes()
    assert scored["n_candidates"] == examples.summary["n_candidates"]
    assert s3.files_below("s3://bucket/out") == ["r.parquet"], "parts are removed at the end"

    kept = on_ray.Settings(storage_options=s3.options, keep_work=True, work="s3://bucket/work")
    own = tmp_path / "r.parquet"  # from S3 to a disk, with parts on S3
    with pytest.warns(UserWarning, match="skipping .* without features in `s3://bucket/noisy.parquet`"):
        on_ray.score(clean, noisy, own, bins=3, candidates=candidates, method="similarity", settings=kept)
    with pytest.warns(UserWarning, match="skipping"):
        labelsieve.score_files(*examples.files, tmp_path / "single.parquet", method="similarity", device="cpu",
                               candidates=examples.folder / "candidates.parquet")  # fmt: skip
    assert own.read_bytes() == (tmp_path / "single.parquet").read_bytes()
    assert any(name.endswith("bins/bin-00002.parquet") for name in s3.files_below("s3://bucket/work"))

    on_ray.train(clean, noisy, "s3://bucket/out/r.parquet", "s3://bucket/out/m.safetensors", settings=settings)
    labelsieve.train_files(*examples.files, examples.folder / "single.parquet", tmp_path / "m.safetensors", device="cpu")
    assert fetched(s3, "s3://bucket/out/m.safetensors", tmp_path) == (tmp_path / "m.safetensors").read_bytes()


def test_match_and_embed_go_from_s3_to_s3(nodes, s3, examples, tmp_path):
    settings = on_ray.Settings(storage_options=s3.options)
    classes, texts = captions(tmp_path, examples)
    put(s3, tmp_path, "classes.toml", "a.jsonl", "b.jsonl.gz", "c.jsonl")
    lists = "s3://bucket/list.parquet", tmp_path / "list.parquet"
    words = ("s3://bucket/classes.toml", "s3://bucket/*.jsonl*", "s3://bucket/c.parquet")
    with pytest.warns(UserWarning, match="1 malformed rows skipped"):
        on_ray.match(*words, shards=2, keep="url", download_list=lists[0], settings=settings)
    with pytest.warns(UserWarning, match="1 malformed rows skipped"):
        labelsieve.match_files(classes, texts, tmp_path / "single.parquet", keep="url", download_list=lists[1])
    assert fetched(s3, "s3://bucket/c.parquet", tmp_path) == (tmp_path / "single.parquet").read_bytes()
    assert fetched(s3, lists[0], tmp_path) == lists[1].read_bytes()

    tars(tmp_path)
    put(s3, tmp_path, "00000.tar", "00001.tar")
    with pytest.warns(UserWarning, match="1 of 14 images were skipped; `s3://bucket/f.parquet.skipped.csv` says why"):
        on_ray.embed(TINY, "s3://bucket/*.tar", "s3://bucket/f.parquet", settings=settings)
    with pytest.warns(UserWarning, match="1 of 14 images were skipped"):
        labelsieve.embed_files(TINY, tmp_path / "0000[01].tar", tmp_path / "f.parquet", device="cpu")
    assert fetched(s3, "s3://bucket/f.parquet", tmp_path) == (tmp_path / "f.parquet").read_bytes()


def test_a_key_that_is_refused_is_one_clear_error(nodes, s3, examples, tmp_path):
    nowhere = on_ray.Settings(storage_options={**KEYS, "endpoint_url": "http://127.0.0.1:9", "config_kwargs": {"retries": {"max_attempts": 1}}})
    with pytest.raises((OSError, ValueError, RuntimeError)) as refused:
        on_ray.score(examples.files[0], "s3://bucket/noisy.parquet", tmp_path / "r.parquet", settings=nowhere)
    assert "127.0.0.1:9" in str(refused.value) and len(str(refused.value).splitlines()) < 3
    with pytest.raises(FileNotFoundError, match="cannot open `s3://bucket/none.parquet`: there is no such file"):
        settings = on_ray.Settings(storage_options=s3.options)
        on_ray.score("s3://bucket/none.parquet", examples.files[1], tmp_path / "r.parquet", settings=settings)


def test_what_is_put_is_there_whole_or_not_at_all(s3, tmp_path, monkeypatch):
    source = tmp_path / "source"
    for path in (str(tmp_path / "deep/er/file.bin"), "s3://bucket/deep/er/file.bin"):
        source.write_bytes(b"new" * 1000)
        s3.put(str(source), path)
        assert s3.exists(path) and s3.size(path) == 3000 and s3.names(path.rsplit("/", 1)[0]) == ["file.bin"]
        first = s3.identity(path)
        source.write_bytes(b"old" * 1000)
        s3.put(str(source), path)
        assert s3.identity(path) != first, "of the same size, but another file"
        s3.remove(path)
        assert not s3.exists(path) and s3.names(path.rsplit("/", 1)[0]) == []
    target = tmp_path / "target.bin"
    target.write_bytes(b"before")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", fails)
    with pytest.raises(OSError, match="No space left"):
        s3.put(str(source), str(target))
    assert target.read_bytes() == b"before" and not list(tmp_path.glob("*.tmp-*"))


def test_paths_and_urls_are_taken_apart_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert normalized("a/../b.npz") == str(tmp_path / "b.npz") == normalized(f"file://{tmp_path}/b.npz")
    assert normalized("s3://bucket/a.npz") == "s3://bucket/a.npz"
    assert join("s3://bucket/a/", "b", "c.tar") == "s3://bucket/a/b/c.tar" and join("/a", "b") == "/a/b"
    assert basename("s3://bucket/a/b.tar/") == "b.tar" == basename("/a/b.tar/")
    assert ending("s3://bucket.name/file") == "" and ending("x.TAR") == "tar"
    (tmp_path / "b[1].npz").touch()
    (tmp_path / "a.npz").touch()
    storage = Storage()
    assert storage.expand(str(tmp_path / "b[1].npz")) == [str(tmp_path / "b[1].npz")]
    assert storage.expand(str(tmp_path / "*.npz")) == [str(tmp_path / "a.npz"), str(tmp_path / "b[1].npz")]
    with pytest.raises(FileNotFoundError, match=r"no file matches `.*\*.tar`"):
        storage.expand(str(tmp_path / "*.tar"))


def test_folders_of_killed_tasks_are_swept_and_those_in_use_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "from labelsieve.ray._scratch import scratch\nimport os\nwith scratch() as folder:\n    os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)})
    (left,) = tmp_path.iterdir()
    with scratch() as first, scratch() as second:
        assert not left.exists() and os.path.isdir(first) and os.path.isdir(second)
    assert list(tmp_path.iterdir()) == []
