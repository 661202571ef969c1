"""From files to files: the functions do what the commands do, and each resumes what the other began."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from _thread import interrupt_main

import numpy as np
import pytest
from conftest import REPOSITORY
from test_files import command

import labelsieve

POOLS = ("clean.npz", "noisy.npz")


def save(folder, data):
    """A sample as a user's files: clean.npz, noisy.npz and test.npz."""
    names = list(dict.fromkeys(data.y))
    parts = {"clean": (data.X, data.y, data.is_clean), "noisy": (data.X, data.y, ~data.is_clean)}
    for name, (X, y, rows) in {**parts, "test": (data.X_test, data.y_test, slice(None))}.items():
        np.savez(folder / name, features_all=X[rows], labels_all=np.array([names.index(label) for label in y[rows]]))


@pytest.fixture
def folder(tmp_path, sample, monkeypatch):
    """A folder to work in; paths are relative, as they are part of what a run is known by."""
    save(tmp_path, sample)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A folder with six classes that take a while each, one after the other."""
    save(tmp_path, labelsieve.demo_data(n_classes=6, n_clean=3, largest_pool=6000))
    monkeypatch.chdir(tmp_path)
    labelsieve.set_num_threads(1)
    yield tmp_path
    labelsieve.set_num_threads(0)


def printed(*words, cwd):
    """The JSON of a command, without the fields that all results have."""
    found = json.loads(command(*words, "--json", cwd=cwd).stdout)
    assert found.pop("version") == labelsieve.__version__ and found.pop("command") == words[0]
    return found


def test_clean_train_predict_and_evaluate_do_what_the_commands_do(folder):
    pools = ("--clean", POOLS[0], "--pool", POOLS[1])
    own = labelsieve.score_files(*POOLS, "own.parquet", lam=0.5, seed=3)
    assert own == printed("score", *pools, "-o", "cli.parquet", "--lambda", "0.5", "--seed", "3", cwd=folder)
    assert (folder / "own.parquet").read_bytes() == (folder / "cli.parquet").read_bytes()
    assert own["n_classes"] == 6 and own["copies"] == {"by_id": 0, "by_content": 0}

    learned = ("--relevance", "cli.parquet", "--classifier", "cosine", "--epochs", "3")
    own = labelsieve.train_files(*POOLS, "own.parquet", "own.safetensors", classifier="cosine", epochs=3)
    assert own == printed("train", *pools, *learned, "-o", "cli.safetensors", cwd=folder)
    assert (folder / "own.safetensors").read_bytes() == (folder / "cli.safetensors").read_bytes()

    own = labelsieve.predict_files("own.safetensors", "own.csv", features="test.npz", top=2)
    guesses = ("--model", "cli.safetensors", "--features", "test.npz", "--top", "2", "-o", "cli.csv")
    assert own == printed("predict", *guesses, cwd=folder)
    assert (folder / "own.csv").read_bytes() == (folder / "cli.csv").read_bytes()

    own = labelsieve.evaluate_files("own.safetensors", test="test.npz")
    assert own == printed("evaluate", "--model", "cli.safetensors", "--test", "test.npz", cwd=folder)
    assert not list(folder.glob("*.partial"))


def test_match_and_candidates_do_what_the_commands_do(tmp_path, sample, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    class_names = list(dict.fromkeys(sample.y))
    ids = [f"photo {row}" for row in range(len(sample.y))]
    frame = pandas.DataFrame({"id": ids, "embedding": list(sample.X), "class": [f"c{class_names.index(c)}" for c in sample.y]})
    frame[sample.is_clean].to_parquet("clean.parquet")
    frame[["id", "embedding"]].to_parquet("all.parquet")  # the clean ones are among them
    captions = frame[["id"]].assign(caption=["seen: the " + name for name in frame["class"]])
    captions.to_csv("captions.csv", index=False)
    with open("classes.toml", "w") as file:
        file.writelines(f'[[class]]\nid = "c{c}"\nnames = ["the c{c}"]\n' for c in range(len(class_names)))

    found = labelsieve.match_files("classes.toml", "captions.csv", "own.parquet", stats="stats.json")
    words = ("--classes", "classes.toml", "--text", "captions.csv", "-o", "cli.parquet")
    assert found == printed("match", *words, cwd=tmp_path)
    assert found["n_candidates"] == len(frame) and (tmp_path / "stats.json").exists()
    assert (tmp_path / "own.parquet").read_bytes() == (tmp_path / "cli.parquet").read_bytes()

    scored = labelsieve.score_files("clean.parquet", "all.parquet", "r.parquet", candidates="own.parquet")
    assert scored["n_candidates"] == (~sample.is_clean).sum() and scored["copies"]["by_id"] == sample.is_clean.sum()
    assert set(labelsieve.read_relevance("r.parquet")["matched_name"]) == {None} | {f"the c{c}" for c in range(6)}
    with pytest.raises(ValueError, match="pool_labels: expected none beside candidates"):
        labelsieve.score_files("clean.parquet", "all.parquet", "r.parquet", candidates="own.parquet", pool_labels="l.npy")


def test_a_dry_run_estimates_and_writes_nothing(folder):
    before = set(folder.iterdir())
    estimate = labelsieve.score_files(*POOLS, dry_run=True)
    words = ("--clean", POOLS[0], "--pool", POOLS[1], "--dry-run")
    assert estimate.keys() == printed("score", *words, cwd=folder).keys()
    assert estimate["n_classes"] == 6 and estimate["memory_bytes"] > 0 and set(folder.iterdir()) == before
    with pytest.raises(ValueError, match="output: expected a file to write; only a dry run needs none"):
        labelsieve.score_files(*POOLS)


def test_within_a_limit_of_memory_a_table_has_the_same_bytes(tmp_path, monkeypatch, caplog):
    save(tmp_path, labelsieve.demo_data(n_classes=2, n_clean=3, largest_pool=9000))
    monkeypatch.chdir(tmp_path)
    expected = labelsieve.score_files(*POOLS, "all.parquet", method="gcn")
    (tmp_path / "scratch").mkdir()
    with caplog.at_level(logging.INFO, logger="labelsieve"):
        for limit in ("60MiB", 60 * 2**20):
            found = labelsieve.score_files(*POOLS, "little.parquet", method="gcn", memory=limit, scratch="scratch")
            assert found == expected
            assert (tmp_path / "little.parquet").read_bytes() == (tmp_path / "all.parquet").read_bytes()
    assert caplog.text.count("working out of core with about") >= 2 and not list((tmp_path / "scratch").iterdir())
    assert labelsieve.score_files(*POOLS, dry_run=True, memory="60MiB", method="gcn")["out_of_core"]["n_classes"] >= 1
    with pytest.raises(ValueError, match="memory: expected a unit, e.g. `4GiB`, found `4`"):
        labelsieve.score_files(*POOLS, "little.parquet", memory="4")
    with pytest.raises(ValueError, match="scratch: expected none without memory"):
        labelsieve.score_files(*POOLS, "little.parquet", scratch="scratch")


class Enough(Exception):
    pass


def test_parts_do_what_the_commands_do_and_merge_into_the_single_run(folder):
    labelsieve.score_files(*POOLS, "whole.parquet", seed=3)
    pools = ("--clean", POOLS[0], "--pool", POOLS[1], "--seed", "3")
    own = labelsieve.plan_files(*POOLS, "own.json", 3, memory="1GiB", seed=3)
    assert own == printed("plan", *pools, "--bins", "3", "--memory", "1GiB", "-o", "cli.json", cwd=folder)
    assert (folder / "own.json").read_bytes() == (folder / "cli.json").read_bytes()
    for bin in range(3):
        done = labelsieve.score_files(*POOLS, f"{bin}.parquet", seed=3, plan="own.json", bin=bin)
        assert done["part"]["index"] == bin and not done["part"]["was_complete"]
    again = labelsieve.score_files(*POOLS, "1.parquet", seed=3, plan="own.json", bin=1)
    assert again["part"]["was_complete"]
    labelsieve.merge_files([f"{bin}.parquet" for bin in range(3)], "merged.parquet")
    assert (folder / "merged.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    labelsieve.score_files(*POOLS, "a.parquet", seed=3, shard="0/2")
    labelsieve.score_files(*POOLS, "b.parquet", seed=3, shard=(1, 2))
    labelsieve.merge_files(["b.parquet", "a.parquet"], "merged.parquet")
    assert (folder / "merged.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    with pytest.raises(ValueError, match="seed: 3 in the plan, 0 here"):
        labelsieve.score_files(*POOLS, "c.parquet", plan="own.json", bin=0)
    estimate = labelsieve.score_files(*POOLS, seed=3, plan="own.json", bin=0, dry_run=True)
    assert estimate["n_candidates"] == own["bins"][0]["n_candidates"]


def stop_early(done, total):
    if 0 < done < total:
        raise Enough


def resumed(text):
    """How many classes a note says were done."""
    assert "resuming: " in text and " of 6 classes done" in text, text
    return int(text.split("resuming: ")[1].split(" of 6")[0])


def test_the_command_line_resumes_what_python_began(slow):
    whole = labelsieve.score_files(*POOLS, "whole.parquet")
    with pytest.raises(Enough):
        labelsieve.score_files(*POOLS, "r.parquet", progress=stop_early)
    assert (slow / "r.parquet.partial").exists() and not (slow / "r.parquet").exists()
    done = command("score", "--clean", POOLS[0], "--pool", POOLS[1], "-o", "r.parquet", cwd=slow)
    assert 0 < resumed(done.stderr) < 6
    assert (slow / "r.parquet").read_bytes() == (slow / "whole.parquet").read_bytes()
    assert not (slow / "r.parquet.partial").exists() and whole["n_classes"] == 6


def test_python_resumes_what_a_killed_command_began(slow, caplog):
    words = ["--threads", "1", "score", "--clean", POOLS[0], "--pool", POOLS[1], "-o", "r.parquet"]
    running = subprocess.Popen([sys.executable, "-m", "labelsieve", *words], cwd=slow, stderr=subprocess.DEVNULL)
    journal = slow / "r.parquet.partial"
    while not (journal.exists() and journal.stat().st_size > 10_000):  # the first class is in it
        assert running.poll() is None, "it was too fast"
        time.sleep(0.005)
    running.kill()
    running.wait()
    with caplog.at_level(logging.INFO, logger="labelsieve"):
        labelsieve.score_files(*POOLS, "r.parquet")
    assert 0 < resumed(caplog.text) < 6
    labelsieve.score_files(*POOLS, "whole.parquet")
    assert (slow / "r.parquet").read_bytes() == (slow / "whole.parquet").read_bytes()


KILLED = """
import os, sys
import labelsieve
labelsieve.set_num_threads(1)
def die(done, total):
    if 0 < done < total:
        os.kill(os.getpid(), 9)
labelsieve.score_files("clean.npz", "noisy.npz", "r.parquet", progress=die)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_a_killed_python_is_resumed(slow, caplog):
    died = subprocess.run([sys.executable, "-c", KILLED], cwd=slow)
    assert died.returncode == -signal.SIGKILL
    told = []
    with caplog.at_level(logging.INFO, logger="labelsieve"):
        labelsieve.score_files(*POOLS, "r.parquet", progress=lambda done, total: told.append((done, total)))
    assert 0 < resumed(caplog.text) < 6
    n_candidates = len(labelsieve.read_features("noisy.npz").X)
    assert told == sorted(told) and told[-1][0] == told[-1][1] < n_candidates, "what is left to do"


INTERRUPTED = """
import os, signal, threading, time
import labelsieve
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
labelsieve.set_num_threads(1)
def interrupt():
    while not os.path.exists("r.parquet.partial") or os.path.getsize("r.parquet.partial") < 10_000:
        time.sleep(0.005)  # the first class is in it then
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    labelsieve.score_files("clean.npz", "noisy.npz", "r.parquet")
except KeyboardInterrupt:
    print("interrupted", os.path.exists("r.parquet"), os.path.exists("r.parquet.partial"))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_control_c_stops_a_job_and_its_journal_stays(slow):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=slow, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted False True\n", "", 0)


def test_notes_are_logged_and_warnings_name_the_line_of_the_user(folder, caplog):
    clean = labelsieve.read_features("clean.npz")
    known = clean.y != "5"
    np.savez("clean.npz", features_all=clean.X[known], labels_all=clean.y[known].astype(int))
    with caplog.at_level(logging.DEBUG, logger="labelsieve"), pytest.warns(UserWarning, match="^skipping .* candidates whose class has no clean example") as seen:
        summary = labelsieve.score_files(*POOLS, "r.parquet", device="cpu")
    assert summary["n_left_out"] > 0 and summary["n_classes"] == 5
    assert [warning.filename for warning in seen] == [__file__]
    assert ("labelsieve", logging.DEBUG, "working on cpu (asked for)") in caplog.record_tuples
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="^skipping"):
        warnings.simplefilter("error")
        labelsieve.score_files(*POOLS, "r.parquet")


def test_lines_that_belong_to_a_warning_are_part_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("classes.toml", "w") as file:
        file.write('[[class]]\nid = "owl"\nnames = ["owl"]\n')
    with open("captions.csv", "w") as file:
        file.write("id,caption\na,an owl\nb\n")
    with pytest.warns(UserWarning, match=r"1 malformed rows skipped; the first:\n  captions.csv:3: expected") as seen:
        labelsieve.match_files("classes.toml", "captions.csv", "c.csv")
    assert len(seen) == 1


def test_a_report_is_that_of_the_command(folder):
    labelsieve.score_files(*POOLS, "relevance.parquet")
    own = labelsieve.report_files("relevance.parquet", "own.html", figures="figures", title="Six classes", per_class=8)
    words = ("report", "relevance.parquet", "-o", "cli.html", "--figures", "more", "--title", "Six classes", "--per-class", "8")
    assert own == printed(*words, cwd=folder) and own["n_classes"] == 6
    assert (folder / "own.html").read_bytes() == (folder / "cli.html").read_bytes()
    assert sorted(os.listdir("figures")) == sorted(os.listdir("more")) != []
    every = labelsieve.report_files("relevance.parquet", "every.html", per_class="all")
    assert every["n_examples"] >= own["n_examples"]
    with pytest.raises(FileNotFoundError, match="cannot open `nope`"):
        labelsieve.report_files("nope", "nope.html")
    with pytest.raises(ValueError, match="text_columns: expected with images alone"):
        labelsieve.report_files("relevance.parquet", "nope.html", text="captions.csv")
    with pytest.raises(ValueError, match="expected with output alone"):
        labelsieve.report_files("relevance.parquet", figures="figures", title="Six classes")


def test_a_review_answers_until_it_is_interrupted(folder):
    labelsieve.score_files(*POOLS, "relevance.parquet", lam=0.5, seed=3)
    answers = []

    def decide(url):
        host = url.split("/")[2]
        body = json.dumps({"class": 1, "rows": [3, 4], "decision": "accept"}).encode()
        request = urllib.request.Request(f"{url}api/decisions", body, {"Origin": f"http://{host}"})
        answers.append(urllib.request.urlopen(request, timeout=60).status)
        interrupt_main()

    files = {"clean": POOLS[0], "pool": POOLS[1], "by": "ann", "no_open": True, "device": "cpu"}
    deciding = []

    def opened(url):
        deciding.append(threading.Thread(target=decide, args=(url,)))
        deciding[0].start()

    closed = labelsieve.review_files("relevance.parquet", "decisions.csv", **files, opened=opened)
    deciding[0].join()
    assert answers == [200] and closed["n_decisions"] == 2 and closed["can_score"]
    table = labelsieve.read_decisions("decisions.csv")
    assert list(table["decision"]) == ["accept", "accept"] and list(table["by"]) == ["ann", "ann"]
    assert closed["command"].startswith("labelsieve.score_files(") and "lam=0.5, seed=3" in closed["command"]
    assert eval(closed["command"])["n_classes"] == 6, "the call can be pasted"


def test_a_review_of_nothing_is_refused(folder):
    with pytest.raises(ValueError, match="`nope` does not exist\nhint: .* that `run_files` or `labelsieve demo` in a shell wrote"):
        labelsieve.review_files("nope")
    labelsieve.score_files(*POOLS, "relevance.parquet")
    with pytest.raises(ValueError, match="no file for the decisions\nhint: give one with `output`"):
        labelsieve.review_files("relevance.parquet", no_open=True)
    with pytest.raises(ValueError, match="pool: expected a value"):
        labelsieve.review_files("relevance.parquet", "decisions.csv", clean=POOLS[0], no_open=True)
    failed = RuntimeError("no window")

    def opened(url):
        raise failed

    with pytest.raises(RuntimeError, match="no window"):
        labelsieve.review_files("relevance.parquet", "decisions.csv", no_open=True, opened=opened)


def test_hints_name_arguments_and_functions(folder):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (folder / "classes.toml").write_text('[[class]]\nid = "owl"\nnames = ["owl"]\n')
    (folder / "captions.csv").write_text("id,caption\na,a cat\n")
    hint = 'try `rule="plural"` or any-word, or other columns with `text_columns`'
    with pytest.raises(ValueError, match=f"none contains `owl` in caption.*\nhint: {hint}$"):
        labelsieve.match_files("classes.toml", "captions.csv", "c.csv")
    pandas.DataFrame({"id": [], "class": [], "matched_name": []}, dtype=str).to_parquet("c.parquet")
    with pytest.raises(ValueError, match="`c.parquet` contains no candidates\nhint: find them with `match_files`"):
        labelsieve.score_files(*POOLS, "r.parquet", candidates="c.parquet")


def test_errors_are_those_of_python(folder):
    with pytest.raises(FileNotFoundError, match="cannot open `none.npz`"):
        labelsieve.score_files("none.npz", "noisy.npz", "r.parquet")
    np.savez("bare.npz", features_all=np.eye(64, dtype=np.float32))
    with pytest.raises(ValueError, match="`bare.npz` contains no classes\nhint: give them with `pool_labels` or `candidates`, "):
        labelsieve.score_files("clean.npz", "bare.npz", "r.parquet")
    with pytest.raises(ValueError, match="the output `r.parquet` would replace the input `r.parquet`"):
        (folder / "r.parquet").touch()
        labelsieve.score_files(*POOLS, "r.parquet", candidates="r.parquet")
    with pytest.raises(ValueError, match="cannot write `r.txt`: the extension must be .parquet or .csv"):
        labelsieve.score_files(*POOLS, "r.txt")
    for call in [
        lambda: labelsieve.score_files(*POOLS, "-"),
        lambda: labelsieve.predict_files("m.safetensors", "-", features="test.npz"),
        lambda: labelsieve.match_files("classes.toml", "t.csv", "-"),
    ]:
        with pytest.raises(ValueError, match="output: expected a file, found `-`\nhint: only the command line writes to stdout"):
            call()
    with pytest.raises(ValueError, match="text: expected a file, found `-`"):
        labelsieve.match_files("classes.toml", ["t.csv", "-"], "c.csv")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: labelsieve.score_files(*POOLS, "r.csv", method="gnc"), "method: expected auto, .*\nhint: did you mean `gcn`"),
        (lambda: labelsieve.score_files(*POOLS, "r.csv", device="gpu"), "device `gpu`: expected auto"),
        (lambda: labelsieve.score_files(*POOLS, "r.csv", lam=-1), "lambda: expected"),
        (lambda: labelsieve.score_files(*POOLS, "r.csv", label_column=3), "label_column: "),
        (lambda: labelsieve.score_files(*POOLS, "r.parquet", plan="p.json"), "plan and bin: expected both or neither"),
        (lambda: labelsieve.score_files(*POOLS, "r.parquet", plan="p.json", bin=0, shard="0/2"), "shard: expected none beside"),
        (lambda: labelsieve.score_files(*POOLS, "r.parquet", shard="2/2"), "shard: expected a shard from 0 to below 2, found 2"),
        (lambda: labelsieve.score_files(*POOLS, "r.parquet", shard="2"), 'shard: expected "I/N" or'),
        (lambda: labelsieve.score_files(*POOLS, "r.csv", shard="0/2"), "cannot write `r.csv`: the extension must be .parquet"),
        (lambda: labelsieve.score_files(*POOLS, "r.parquet", neighbours_approximate=1.5), "expected a number between 0 and 1, found 1.5"),
        (lambda: labelsieve.plan_files(*POOLS, "p.json", 0), "bins: expected"),
        (lambda: labelsieve.plan_files(*POOLS, "p.json", 2, memory="8"), "memory: expected a unit, e.g. `8GiB`, found `8`"),
        (lambda: labelsieve.train_files(*POOLS, "r", "m", classifier="attention"), "classifier: expected auto, prototype, cosine or discriminant, found"),
        (lambda: labelsieve.train_files(*POOLS, "r", "m", epochs=3), 'classifier="cosine" alone, found classifier="auto"'),
        (lambda: labelsieve.train_files(*POOLS, "r", "m", shrinkage=2), "shrinkage: expected auto, ledoit-wolf, oas, left-out, or a number"),
        (lambda: labelsieve.train_files(*POOLS, "r", "m", classifier="cosine", shrinkage=0.1), "\"discriminant\", found classifier=\"cosine\""),
        (lambda: labelsieve.predict_files("m", "p.csv", features="f", reject=2), "expected a share between 0 and 1, found 2"),
        (lambda: labelsieve.predict_files("m", "p.csv"), "features and images: expected one of the two, found none"),
        (lambda: labelsieve.predict_files("m", "p.csv", features="f", images="i"), "found both"),
        (lambda: labelsieve.predict_files("m", "p.csv", features="f", strict=True), "expected with images alone"),
        (lambda: labelsieve.evaluate_files(), "nothing to evaluate"),
        (lambda: labelsieve.evaluate_files("m", test="t", where="a=b"), "expected with images alone"),
        (lambda: labelsieve.embed_files("m", "i", "f.npy", image_size=5000), "image_size: expected at most 4096, found 5000"),
        (lambda: labelsieve.embed_files("m", "i", "f.npy", image_size=(1, 2, 3)), "expected a height and a width"),
        (lambda: labelsieve.embed_files("m", "i", "f.npy", batch=1 << 17), "batch: expected at most 65536"),
        (lambda: labelsieve.match_files("c", "t", "o.csv", near_duplicate=2), r"near_duplicate: expected a number in \[0, 1\]"),
        (lambda: labelsieve.embed_files("m", "i", "f.npy", fit_pca=3), "fit_pca and pca_output: expected both"),
        (lambda: labelsieve.embed_files("m", "i", "f.npy", where="split"), "where: expected COLUMN=VALUE"),
        (lambda: labelsieve.finetune_files("m", "r", "i", "n", base_where="a=b"), "expected with base_images alone"),
        (lambda: labelsieve.match_files("c", "t", "o.csv", features="f"), "guard_features and features: expected both"),
    ],
)
def test_bad_arguments_are_refused_by_name(folder, call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_images_are_embedded_learned_and_named(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    monkeypatch.chdir(tmp_path)
    rng, colours = np.random.default_rng(0), {"red": (200, 30, 30), "blue": (30, 30, 200)}
    for name, colour in colours.items():
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(6):
            pixels = np.clip(rng.normal(colour, 40, (16, 16, 3)), 0, 255).astype(np.uint8)
            image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    recipe = ["--architecture", "resnet10", "--size", "16", "--epochs", "1", "--batches", "1", "--batch-size", "4"]
    command("pretrain", "--images", "photos", *recipe, "-o", "net.safetensors", cwd=tmp_path)

    told = []
    embedded = labelsieve.embed_files(
        "net.safetensors", "photos", "f.parquet", batch=5, device="cpu", progress=lambda *now: told.append(now)
    )
    words = ("--model", "net.safetensors", "--images", "photos", "--batch", "5", "--device", "cpu", "-o", "cli.parquet")
    printed_by_command = printed("embed", *words, cwd=tmp_path)
    for summary in (embedded, printed_by_command):
        assert summary.pop("images_per_second") > 0
    assert embedded == printed_by_command and embedded["n_images"] == 12 and told[-1] == (12, 12)
    assert (tmp_path / "f.parquet").read_bytes() == (tmp_path / "cli.parquet").read_bytes()

    examples = labelsieve.read_features("f.parquet")
    ids = [str(i) for i in examples.ids]
    relevance = {"id": ids, "class": examples.y, "relevance": [1.0] * 12, "is_clean": [i % 6 < 2 for i in range(12)]}
    labelsieve.write_relevance("r.parquet", relevance)
    settings = {"epochs": 1, "batch_size": 4, "device": "cpu", "seed": 1}
    tuned = labelsieve.finetune_files("net.safetensors", "r.parquet", "photos", "own.safetensors", **settings)
    words = ("--network", "net.safetensors", "--relevance", "r.parquet", "--images", "photos", "--epochs", "1", "--seed", "1")
    by_command = printed("finetune", *words, "--batch-size", "4", "--device", "cpu", "-o", "cli.safetensors", cwd=tmp_path)
    assert tuned["n_classes"] == by_command["n_classes"] == 2 and os.path.exists(tuned["curves"][0])
    assert (tmp_path / "own.safetensors").read_bytes() == (tmp_path / "cli.safetensors").read_bytes()

    (tmp_path / "photos" / "red" / "broken.png").write_bytes(b"\x89PNG and no more")
    with pytest.warns(UserWarning, match="1 of 13 images were skipped; `f.npy.skipped.csv` says why"):
        labelsieve.embed_files("net.safetensors", ["photos"], "f.npy", device="cpu")
    with pytest.raises(ValueError, match="broken.png.*\nhint: .*drop `strict`"):
        labelsieve.embed_files("net.safetensors", "photos", "g.npy", strict=True)
    with pytest.warns(UserWarning, match="broken.png"):
        named = labelsieve.predict_files("own.safetensors", "p.csv", images="photos", device="cpu")
    assert named == {"n_examples": 12, "n_classes": 2}


def test_networks_go_by_name_by_folder_or_not_at_all(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for i, photo in enumerate(np.random.default_rng(0).integers(0, 256, (3, 20, 24, 3), dtype=np.uint8)):
        image.fromarray(photo).save(tmp_path / "photos" / f"{i}.png")
    clip = REPOSITORY / "crates/labelsieve-networks/tests/golden/towers/clip"
    tiny = REPOSITORY / "models/tiny-resnet10.safetensors"
    models = {None: ("efficientnet-lite0 ", 1280), tiny: ("resnet10 ", 512), clip: ("clip ", 12)}
    for model, (name, dim) in models.items():
        summary = labelsieve.embed_files(model, "photos", "f.parquet", device="cpu")
        features = labelsieve.read_features("f.parquet")
        assert summary["dim"] == features.X.shape[1] == dim and features.network.startswith(name)
        words = () if model is None else ("--model", str(model))
        command("embed", *words, "--images", "photos", "--device", "cpu", "-o", "cli.parquet", cwd=tmp_path)
        assert (tmp_path / "f.parquet").read_bytes() == (tmp_path / "cli.parquet").read_bytes()
    with pytest.raises(ValueError, match="the network `tiny_resnet_10` is not built in\nhint: pass its file: `models/tiny-resnet10.safetensors`"):
        labelsieve.embed_files("tiny_resnet_10", "photos", "g.parquet")
    with pytest.raises(ValueError, match="has no file `config.json`"):
        labelsieve.embed_files("photos", "photos", "g.parquet")
    with pytest.raises(ValueError, match="tiny-resnet10.safetensors` has no text tower"):
        labelsieve.embed_text_files(tiny, clip.parent / "classes.toml", "g.parquet")
    assert not (tmp_path / "g.parquet").exists()


def test_a_bar_of_ours_is_new_for_every_stretch(monkeypatch, capsys):
    from labelsieve._progress import Stretches

    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    told = Stretches(True)
    for unit in ("images", "epochs"):
        told.begin(unit)
        told(2, 2)
    lines = capsys.readouterr().err.splitlines()[-2:]
    assert lines == ["labelsieve: 100 % of 2 images", "labelsieve: 100 % of 2 epochs"]
    with pytest.raises(TypeError, match="progress: expected True"):
        labelsieve.score_files(*POOLS, "r.csv", progress=3)
