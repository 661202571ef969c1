"""The commands on a Ray cluster: the files of one machine, byte for byte."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY
from ray_cluster import files_below, pa, pq, write_table
from test_files import command

import labelsieve
import labelsieve.ray as on_ray
from labelsieve.ray._command import _parser, main
from labelsieve.ray._options import CLUSTER, COMMANDS

#: A network of the repository.
TINY = REPOSITORY / "models/tiny-resnet10.safetensors"


def single(examples, output, **options):
    clean, noisy = (options.pop(name, default) for name, default in zip(("clean", "pool"), examples.files))
    return labelsieve.score_files(clean, noisy, output, device="cpu", **options)


def assert_same(scored, alone):
    """The summary of a single run, but for the order in which a mean was summed up, and for the bins."""
    rest = [{name: value for name, value in one.items() if name not in ("bins", "mean_relevance")} for one in (scored, alone)]
    assert rest[0] == rest[1] and scored["mean_relevance"] == pytest.approx(alone["mean_relevance"])


def test_bins_of_classes_make_the_file_of_a_single_run(nodes, examples, tmp_path):
    told = []
    settings = on_ray.Settings(progress=lambda *now: told.append(now))
    scored = on_ray.score(*examples.files, tmp_path / "r.parquet", bins=3, seed=5, settings=settings)
    assert (tmp_path / "r.parquet").read_bytes() == examples.bytes()
    assert_same(scored, examples.summary)
    assert [b["bin"] for b in sorted(scored["bins"], key=lambda b: b["bin"])] == [0, 1, 2]
    assert all(b["peak_bytes"] > 1 << 20 and b["seconds"] > 0 and b["seconds_planned"] > 0 for b in scored["bins"])
    assert scored["bins"][0]["seconds"] == max(b["seconds"] for b in scored["bins"])
    assert told[-1] == (scored["n_candidates"], scored["n_candidates"])
    assert files_below(tmp_path) == ["r.parquet"], "parts are removed at the end"


def test_an_example_of_classes_in_several_bins_goes_to_each(nodes, examples, tmp_path):
    candidates = examples.folder / "candidates.parquet"
    for name in ("r.parquet", "r.csv"):
        with pytest.warns(UserWarning, match="skipping"):
            alone = single(examples, tmp_path / f"single-{name}", candidates=candidates, method="gcn")
        with pytest.warns(UserWarning, match="skipping") as told:
            scored = on_ray.score(*examples.files, tmp_path / name, bins=8, candidates=candidates, method="gcn")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"single-{name}").read_bytes()
        assert_same(scored, alone)
        assert scored["n_left_out"] > 2 and len(told) == 2, "once of each kind"


def variants(examples, folder):
    """The same examples in other formats: f16, large lists, arrays with ids beside them or none, clip-retrieval."""
    table = pq.read_table(examples.files[1])
    ids, labels = (np.array(table[name].to_pylist()) for name in ("id", "class"))
    X = np.stack(table["embedding"].to_numpy())
    write_table(folder / "f16.parquet", ids, labels, X, np.float16)
    lists = pa.LargeListArray.from_arrays(np.arange(0, X.size + 1, X.shape[1]), X.astype(np.float64).reshape(-1))
    pq.write_table(pa.table({"uid": ids, "label": labels, "vector": lists}), folder / "lists.parquet", row_group_size=50)
    np.save(folder / "half.npy", X.astype(np.float16))
    with open(folder / "half.npy.ids.csv", "w") as file:
        file.writelines(["id,class\n", *(f'"{id}",{label}\n' for id, label in zip(ids, labels))])
    np.savez_compressed(folder / "packed.npz", X=X, y=np.array([int(label[6:]) for label in labels]))
    for at, rows in {"10": slice(700, None), "9": slice(0, 700)}.items():
        (folder / "clip/img_emb").mkdir(parents=True, exist_ok=True)
        (folder / "clip/metadata").mkdir(exist_ok=True)
        np.save(folder / f"clip/img_emb/img_emb_{at}.npy", X[rows].astype(np.float16))
        metadata = pa.table({"image_path": ids[rows], "class": labels[rows]})
        pq.write_table(metadata, folder / f"clip/metadata/metadata_{at}.parquet")
    return ["f16.parquet", "lists.parquet", "half.npy", "packed.npz", "clip"]


def test_every_format_of_features_is_shuffled(nodes, examples, tmp_path, monkeypatch):
    monkeypatch.setattr("labelsieve.ray._score._PIECE_BYTES", 64 * 4 * 300)  # several pieces of each
    numbers = pq.read_table(examples.files[0])
    np.savez(tmp_path / "clean.npz", X=np.stack(numbers["embedding"].to_numpy()), y=[int(c[6:]) for c in numbers["class"].to_pylist()])
    for name in variants(examples, tmp_path):
        clean = tmp_path / "clean.npz" if name == "packed.npz" else examples.files[0]
        options = {"clean": clean, "pool": tmp_path / name, "method": "similarity"}
        alone = single(examples, tmp_path / "single.parquet", **options)
        scored = on_ray.score(**options, output=tmp_path / "r.parquet", bins=2)
        assert (tmp_path / "r.parquet").read_bytes() == (tmp_path / "single.parquet").read_bytes(), name
        assert_same(scored, alone)


def test_bins_score_classes_that_do_not_fit_within_the_memory_of_the_plan(nodes, examples, tmp_path):
    """Out of core they need some too, which is more than this: the limit has reached the bin."""
    too_little = r"^bin \d of 2: 64 KiB of memory are too little for `class \d`, even out of core: .*\nhint: raise `memory`"
    with pytest.warns(UserWarning, match="more memory than 64"), pytest.raises(ValueError, match=too_little):
        on_ray.score(*examples.files, tmp_path / "r.parquet", bins=2, memory="64KiB", method="gcn")


def test_rows_without_ids_keep_their_numbers_if_these_are_unique(nodes, examples, tmp_path):
    table = pq.read_table(examples.files[1]).drop_columns(["id"])
    pq.write_table(table, tmp_path / "noisy.parquet")
    options = {"pool": tmp_path / "noisy.parquet", "method": "similarity"}
    single(examples, tmp_path / "single.parquet", **options)
    on_ray.score(examples.files[0], output=tmp_path / "r.parquet", bins=2, **options)
    assert (tmp_path / "r.parquet").read_bytes() == (tmp_path / "single.parquet").read_bytes()
    clean = pq.read_table(examples.files[0])
    write_table(tmp_path / "clean.parquet", np.arange(len(clean)) + 9, clean["class"].to_pylist(), np.stack(clean["embedding"].to_numpy()))
    with pytest.raises(ValueError, match="the plan: the clean example `9` has the number of a row of `.*noisy.parquet`, which has no ids"):
        on_ray.score(tmp_path / "clean.parquet", output=tmp_path / "r2.parquet", bins=2, **options)
    with pytest.raises(ValueError, match="noisy.parquet` has no ids, by which candidates are known\nhint: "):
        on_ray.score(examples.files[0], output=tmp_path / "r3.parquet", candidates=examples.folder / "candidates.parquet", **options)


def test_decisions_base_and_columns_reach_every_bin(nodes, examples, tmp_path):
    clean, noisy = (pq.read_table(path) for path in examples.files)
    for name, table in {"clean": clean, "noisy": noisy}.items():
        pq.write_table(table.rename_columns(["name", "kind", "numbers"]), tmp_path / f"{name}.parquet", row_group_size=200)
    decided = noisy.slice(0, 40)
    with open(tmp_path / "decisions.csv", "w") as file:
        file.write("id,class,decision\n")
        for row, (id, label) in enumerate(zip(decided["id"].to_pylist(), decided["class"].to_pylist())):
            file.write(f"{id},{label},{('accept', 'reject', 'unsure')[row % 3]}\n")
    base = np.random.default_rng(2).normal(size=(12, 64)).astype(np.float32)
    np.savez(tmp_path / "base.npz", X=base, y=np.arange(12) // 3)
    options = {
        "clean": tmp_path / "clean.parquet", "pool": tmp_path / "noisy.parquet", "decisions": tmp_path / "decisions.csv",
        "base": tmp_path / "base.npz", "id_column": "name", "label_column": "kind", "embedding_column": "numbers", "seed": 3,
    }  # fmt: skip
    alone = single(examples, tmp_path / "single.parquet", **options)
    scored = on_ray.score(**options, output=tmp_path / "r.parquet", bins=4)
    assert (tmp_path / "r.parquet").read_bytes() == (tmp_path / "single.parquet").read_bytes()
    assert_same(scored, alone)
    assert scored["decisions"]["n_accept"] == 14


def captions(folder, examples):
    """Captions of the examples in three files, one of them compressed."""
    import gzip

    table = pq.read_table(examples.files[1])
    ids, labels = table["id"].to_pylist(), table["class"].to_pylist()
    texts = [{"id": id, "caption": f"seen: the {label}, or so", "url": f"http://x/{id[:-5]}"} for id, label in zip(ids, labels)]
    rows = [json.dumps(text) + "\n" for text in texts]
    third = len(rows) // 3
    (folder / "a.jsonl").write_text("".join(rows[:third]))
    with gzip.open(folder / "b.jsonl.gz", "wt") as file:
        file.writelines(rows[third : 2 * third])
    (folder / "c.jsonl").write_text("".join(rows[2 * third :]) + "no JSON\n")
    classes = "".join(f'[[class]]\nid = "class {c}"\nnames = ["the class {c}"]\n' for c in range(8))
    (folder / "classes.toml").write_text(classes)
    return folder / "classes.toml", [str(folder / name) for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl")]


def test_shards_of_texts_make_the_candidates_of_a_single_run(nodes, examples, tmp_path):
    classes, texts = captions(tmp_path, examples)
    both = []
    for match, name, cut in ((labelsieve.match_files, "single", {}), (on_ray.match, "c", {"shards": 5})):
        others = {"stats": tmp_path / f"{name}.json", "download_list": tmp_path / f"{name}-list.parquet", "keep": ["url"]}
        with pytest.warns(UserWarning, match="1 malformed rows skipped"):
            both.append(match(classes, texts, tmp_path / f"{name}.parquet", **others, **cut))
    alone, found = both
    for name in (".parquet", "-list.parquet"):
        assert (tmp_path / f"c{name}").read_bytes() == (tmp_path / f"single{name}").read_bytes()
    alone = {name: value for name, value in alone.items() if name != "n_candidates_plural"}
    for counted in alone["classes"]:
        counted.pop("n_candidates_plural", None)
    assert found == alone and found["n_malformed"] == 1
    assert json.loads((tmp_path / "c.json").read_text())["classes"] == alone["classes"]
    with pytest.raises(ValueError, match="no candidates: none of the"):
        (tmp_path / "none.toml").write_text('[[class]]\nid = "x"\nnames = ["unheard of"]\n')
        on_ray.match(tmp_path / "none.toml", texts[:1], tmp_path / "n.parquet", shards=2)
    assert not (tmp_path / "n.parquet").exists()


def tars(folder):
    """Photos in three tars; two photos cannot be read, and one tar has no other."""
    import io
    import tarfile

    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    rng = np.random.default_rng(0)
    for number, n in enumerate((5, 9, 1)):
        with tarfile.open(folder / f"{number:05}.tar", "w") as tar:
            for i in range(n):
                content = io.BytesIO()
                image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(content, "PNG")
                damaged = number == 2 or (number == 1 and i == 4)
                entry = tarfile.TarInfo(f"{number:05}{i:04}.png")
                data = b"\x89PNG and no more" if damaged else content.getvalue()
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))


def test_tars_are_embedded_side_by_side_into_one_file(nodes, tmp_path):
    (tmp_path / "photos").mkdir()
    tars(tmp_path / "photos")
    with pytest.warns(UserWarning, match="2 of 15 images were skipped"):
        alone = labelsieve.embed_files(TINY, tmp_path / "photos", tmp_path / "single.parquet", batch=4, device="cpu")
    with pytest.warns(UserWarning, match="2 of 15 images were skipped; `.*f.parquet.skipped.csv` says why"):
        found = on_ray.embed(TINY, tmp_path / "photos", tmp_path / "f.parquet", batch=4)
    assert (tmp_path / "f.parquet").read_bytes() == (tmp_path / "single.parquet").read_bytes()
    lists = [(tmp_path / f"{name}.parquet.skipped.csv").read_bytes() for name in ("f", "single")]
    assert lists[0] == lists[1]
    for summary in (alone, found):
        assert summary.pop("images_per_second") > 0 and summary.pop("skipped_list")
    assert found == alone
    with pytest.raises(ValueError, match="expected a folder, .tar or .parquet files, found a single file\nhint: give the folder"):
        (tmp_path / "a.png").touch()
        on_ray.embed(None, tmp_path / "a.png", tmp_path / "g.parquet")
    with pytest.raises(TypeError, match="fit_pca"):
        on_ray.embed(None, tmp_path / "photos", tmp_path / "g.parquet", fit_pca=3)
    with pytest.raises(ValueError, match=r"0000\d.tar`: .*PNG"):
        on_ray.embed(TINY, tmp_path / "photos", tmp_path / "g.parquet", strict=True)


def test_a_classifier_is_trained_in_one_task(nodes, examples, tmp_path):
    options = {"classifier": "cosine", "epochs": 3, "seed": 1}
    relevance = examples.folder / "single.parquet"
    alone = labelsieve.train_files(*examples.files, relevance, tmp_path / "single.safetensors", device="cpu", **options)
    trained = on_ray.train(*examples.files, relevance, tmp_path / "m.safetensors", **options)
    assert trained == alone
    assert (tmp_path / "m.safetensors").read_bytes() == (tmp_path / "single.safetensors").read_bytes()


def test_arguments_that_cannot_work_are_refused_before_the_work(nodes, examples, tmp_path):
    clean, noisy = examples.files
    for call, kind, message in [
        (lambda: on_ray.score(clean, noisy, tmp_path / "r.txt"), ValueError, "extension must be .parquet or .csv"),
        (lambda: on_ray.score(clean, noisy, "-"), ValueError, "output: expected a file, found `-`"),
        (lambda: on_ray.score(clean, noisy, "r.parquet", shard="0/2"), TypeError, "unexpected keyword argument 'shard'"),
        (lambda: on_ray.score(clean, tmp_path / "none.parquet", "r.parquet"), FileNotFoundError, "none.parquet"),
        (lambda: on_ray.score(clean, noisy, "r.parquet", device="cuda"), ValueError, "hint: give num_gpus=1"),
        (lambda: on_ray.Settings(task_cpus=0), ValueError, "task_cpus: expected a positive number"),
        (lambda: on_ray.score(clean, noisy, "r.parquet", settings=on_ray.Settings(address="auto")), ValueError, "already init"),
        (lambda: on_ray.match(clean, noisy, "c.parquet", shards=0), ValueError, "shards: expected a positive integer"),
        (lambda: on_ray.train(clean, noisy, clean, "m.parquet"), ValueError, "extension must be .safetensors"),
        (lambda: on_ray.score(clean, "s3x://a/b.parquet", "r.parquet"), ValueError, "`s3x://a/b.parquet`: Protocol not known"),
    ]:
        with pytest.raises(kind, match=message):
            call()


def test_bad_input_is_one_clear_error_that_names_the_task(nodes, examples, tmp_path):
    table = pq.read_table(examples.files[1])
    X = np.stack(table["embedding"].to_numpy())
    X[17, 3] = np.nan
    write_table(tmp_path / "noisy.parquet", table["id"].to_pylist(), table["class"].to_pylist(), X)
    with pytest.raises(ValueError) as refused:
        on_ray.score(examples.files[0], tmp_path / "noisy.parquet", tmp_path / "r.parquet", bins=2)
    noisy = tmp_path / "noisy.parquet"
    assert str(refused.value) == f"rows 0 of 1: `{noisy}`: row 17, column 3: expected a finite number, found nan"
    assert refused.value.__cause__ is None, "no traceback of Ray's"


def options_of(text):
    """Long options in a help text, with the defaults that it says."""
    found = {}
    for block in re.split(r"\n\s+(?=-)", text):
        match = re.match(r"(?:-\w(?: \S+)?, )?(--[a-z-]+)", block)
        if match:
            default = re.search(r"\[default:\s+([^\]]*)\]", block)
            found[match[1]] = re.sub(r"\s+", " ", default[1]) if default else None
    return found


#: Options of the command line that say nothing about the result, or that the cluster has in another form.
LEFT_OUT = {"--help", "--quiet", "--verbose", "--threads", "--json", "--color", "--version", "--dry-run", "--plan", "--bin", "--shard",
            "--fit-pca", "--pca-output", "--neighbours-approximate", "--memory", "--scratch"}  # fmt: skip


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_commands_have_the_options_of_the_command_line(name, tmp_path):
    wide = {**os.environ, "COLUMNS": "400"}  # so that no value is cut at its hyphen
    line = [sys.executable, "-m", "labelsieve.ray", name, "--help"]
    own = subprocess.run(line, capture_output=True, text=True, check=True, env=wide).stdout
    theirs = options_of(command(name, "--help", cwd=tmp_path).stdout)
    found = options_of(own)
    added = {option.flag for option in (*CLUSTER, *COMMANDS[name].own)}
    assert set(theirs) - LEFT_OUT == set(found) - LEFT_OUT - added
    for flag in set(theirs) & set(found) - LEFT_OUT:
        plain = re.compile(r"[a-z0-9.-]+")
        if theirs[flag] and plain.fullmatch(theirs[flag]):
            assert found[flag] == theirs[flag], flag


def test_without_ray_there_is_help_and_a_hint(tmp_path):
    """An interpreter in which neither Ray nor pyarrow can be found."""
    code = (
        "import sys, importlib.util, runpy\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name in ('ray', 'pyarrow', 'fsspec') else find(name, *rest)\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('ray', 'pyarrow', 'fsspec'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "runpy.run_module('labelsieve.ray', run_name='__main__', alter_sys=True)\n"
    )
    run = lambda *words: subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path)
    assert "--candidates" in run("score", "--help").stdout
    refused = run("score", "--clean", "c", "--pool", "n", "-o", "r.parquet")
    assert refused.returncode == 1
    assert refused.stderr == "error: labelsieve.ray needs ray and pyarrow and fsspec\nhint: pip install 'labelsieve[ray]'\n"


def test_the_name_of_the_package_does_not_hide_ray():
    assert importlib.import_module("ray").__name__ == "ray" and hasattr(importlib.import_module("ray"), "init")
    assert on_ray.__name__ == "labelsieve.ray" and sorted(on_ray.__all__) == dir(on_ray)


def test_commands_in_the_documents_parse():
    lines = [
        line.split(" #")[0]
        for document in ("README.md", "docs/scale.md")
        for line in (REPOSITORY / document).read_text().splitlines()
        if line.startswith("python -m labelsieve.ray ")
    ]
    assert len(lines) > 4
    for line in lines:
        words = shlex.split(line)[3:]
        if "…" not in words:
            _parser().parse_args(words)
        known = {option.flag for option in (*COMMANDS[words[0]].required, *COMMANDS[words[0]].optional, *COMMANDS[words[0]].own, *CLUSTER)}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_options_that_are_no_json_are_refused(capsys):
    words = ["score", "--clean", "c.npz", "--pool", "n.npz", "-o", "r.parquet", "--storage-options"]
    for wrong, message in {"[": "expected JSON, found `[`", "3": "expected an object, found `3`"}.items():
        assert main([*words, wrong]) == 1
        assert capsys.readouterr().err.startswith(f"error: --storage-options: {message}")
