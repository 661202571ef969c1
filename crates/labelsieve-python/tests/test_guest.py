"""A good guest of the interpreter: other threads run, Ctrl-C works, progress is reported, forks are survived."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import labelsieve


@pytest.fixture(scope="module")
def large():
    """Seconds of work."""
    return labelsieve.normalize(np.random.default_rng(0).standard_normal((30_000, 128)).astype(np.float32))


def test_other_threads_run_meanwhile(large):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.monotonic()
    labelsieve.relevance(large[:5], large[5:])
    end = time.monotonic()
    done.set()
    ticker.join()
    inside = [t for t in ticks if start < t < end]
    # With the lock held there would be none at all; how many there are depends on what else the machine does.
    assert len(inside) > 10


def test_calls_from_several_threads_do_not_disturb_each_other(sample):
    rows = sample.X
    expected = labelsieve.relevance(rows[:5], rows[5:], seed=1)
    results = [None] * 4

    def work(i):
        results[i] = labelsieve.relevance(rows[:5], rows[5:], seed=1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for result in results:
        np.testing.assert_array_equal(result, expected)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import labelsieve
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
rows = np.random.default_rng(0).standard_normal((150_000, 256)).astype(np.float32)
y = np.zeros(len(rows), int)
begun = threading.Event()
def interrupt():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
told = []
def progress(done, total):
    told.append((done, total))
    if done:
        begun.set()
try:
    {work}
except KeyboardInterrupt:
    assert told[-1][0] < told[-1][1], told[-1]  # in the middle
    small = rows[:200]
    assert len(labelsieve.relevance(small[:3], small[3:])) == 197  # and it still works
    print("interrupted")
else:
    print("finished")
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
@pytest.mark.parametrize(
    "work",
    [
        "labelsieve.relevance(rows[:5], rows[5:], progress=progress)",
        "labelsieve.Cleaner(progress=progress).fit(rows, y, is_clean=np.arange(len(rows)) < 5)",
        "labelsieve.knn_graph(rows, progress=progress)",
        "labelsieve.CosineClassifier(epochs=100_000, progress=progress).fit(rows[:999], np.arange(999) % 9, is_clean=True)",
    ],
)
def test_control_c_stops_in_the_middle_with_keyboard_interrupt(work):
    if "knn_graph" in work:
        pytest.importorskip("scipy")
    code = INTERRUPTED.replace("{work}", work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_progress_rises_to_its_total(large):
    told = []
    labelsieve.relevance(large[:5], large[5:], progress=lambda done, total: told.append((done, total)))
    n = len(large)
    assert told[-1] == (2 * n - 5, 2 * n - 5), "candidates for the graph, all rows for the training"
    assert len(told) > 2 and told == sorted(told)


def test_progress_takes_bars_of_tqdm(sample):
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed")
    with tqdm.tqdm(disable=False, file=open(os.devnull, "w")) as bar:
        labelsieve.Cleaner(progress=bar).fit(sample.X, sample.y, is_clean=sample.is_clean)
        assert bar.n == bar.total > 0
    labelsieve.relevance(sample.X[:2], sample.X[2:], progress=True)
    with pytest.raises(TypeError, match="progress: expected True, a function"):
        labelsieve.relevance(sample.X[:2], sample.X[2:], progress=3)


def test_an_exception_of_the_callback_stops_the_work(large):
    def progress(done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        labelsieve.relevance(large[:5], large[5:], progress=progress)


def in_child(seed):
    rows = labelsieve.demo_data(n_classes=2).X
    return labelsieve.relevance(rows[:3], rows[3:], seed=seed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_workers_work_after_the_parent_did():
    expected = [in_child(seed) for seed in range(4)]  # the parent's threads are up
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(in_child, range(4)).get(timeout=120)
    for result, right in zip(results, expected):
        np.testing.assert_array_equal(result, right)
    np.testing.assert_array_equal(in_child(0), expected[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_in_the_middle_of_work_is_survived(large):
    """Another thread is deep in Rust, with the pool's threads at work, when the process forks."""
    worker = threading.Thread(target=lambda: labelsieve.relevance(large[:5], large[5:]))
    worker.start()
    time.sleep(0.2)
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)  # a deadlock ends the child, not the test run
        os._exit(0 if len(in_child(0)) > 0 else 1)
    _, status = os.waitpid(pid, 0)
    worker.join()
    assert status == 0


@pytest.mark.parametrize("n_workers", [0, 2])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_works_inside_a_data_loader(n_workers):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    class Scored(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, seed):
            return torch.from_numpy(in_child(seed))

    expected = [in_child(seed) for seed in range(4)]
    loader = torch.utils.data.DataLoader(Scored(), batch_size=None, num_workers=n_workers, timeout=120 if n_workers else 0)
    for result, right in zip(loader, expected):
        np.testing.assert_array_equal(result.numpy(), right)


def test_a_processor_level_that_is_not_there_raises_before_any_work(sample, monkeypatch):
    monkeypatch.setenv("LABELSIEVE_CPU", "avx3")
    with pytest.raises(ValueError, match=r"LABELSIEVE_CPU: expected a level that this machine has \(plain.*found `avx3`"):
        labelsieve.relevance(sample.X[:5], sample.X[5:])
    monkeypatch.setenv("LABELSIEVE_CPU", "plain")
    assert len(labelsieve.relevance(sample.X[:5], sample.X[5:])) == len(sample.X) - 5
