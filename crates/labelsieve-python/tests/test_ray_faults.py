"""What goes wrong on a cluster: each time the file of a single run, or one clear error, and nothing of the work is lost."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from ray_cluster import InBackground, files_below, kill_one_at, workers_at, write_examples

import labelsieve
import labelsieve.ray as on_ray
from labelsieve.ray._score_tasks import Share
from labelsieve.ray._storage import Storage
from labelsieve.ray._tables import Columns

KEEP = on_ray.Settings(keep_work=True)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """Classes that take seconds, so that something can happen to those who work on them."""
    folder = tmp_path_factory.mktemp("slow")
    write_examples(folder, labelsieve.demo_data(n_classes=4, n_clean=3, largest_pool=9000))
    files = str(folder / "clean.parquet"), str(folder / "noisy.parquet")
    labelsieve.score_files(*files, folder / "single.parquet", method="gcn", device="cpu")
    return files, (folder / "single.parquet").read_bytes()


def parts_of(folder, name="r.parquet"):
    """The folder of a run's parts."""
    (found,) = (folder / f"{name}.parts").iterdir()
    return found


def test_a_bin_whose_process_is_killed_is_scored_again(nodes, slow, tmp_path):
    files, whole = slow
    running = InBackground(lambda: on_ray.score(*files, tmp_path / "r.parquet", bins=2, method="gcn"))
    killed = kill_one_at("bin")
    running.get()
    assert (tmp_path / "r.parquet").read_bytes() == whole
    assert killed not in workers_at("")
    assert files_below(tmp_path) == ["r.parquet"]


def test_a_node_that_dies_does_not_end_the_work(nodes, slow, tmp_path):
    files, whole = slow
    running = InBackground(lambda: on_ray.score(*files, tmp_path / "r.parquet", bins=4, method="gcn"))
    wait_until(lambda: len(workers_at("bin")) == 2)  # one on each node
    nodes.kill_other()
    try:
        running.get()
        assert (tmp_path / "r.parquet").read_bytes() == whole
    finally:
        nodes.replace_other()


def test_a_process_that_always_dies_is_an_error_that_names_the_bin(nodes, slow, tmp_path):
    once = on_ray.Settings(max_retries=0)
    running = InBackground(lambda: on_ray.score(*slow[0], tmp_path / "r.parquet", bins=2, method="gcn", settings=once))
    kill_one_at("bin")
    with pytest.raises(RuntimeError, match=r"^bin \d of 2: its process died once\nhint: the logs of its node"):
        running.get()
    assert not (tmp_path / "r.parquet").exists() and "plan.json" in files_below(parts_of(tmp_path))


def test_only_a_part_that_was_deleted_is_made_again(nodes, examples, tmp_path, caplog):
    call = lambda: on_ray.score(*examples.files, tmp_path / "r.parquet", bins=4, seed=5, settings=KEEP)
    call()
    work = parts_of(tmp_path)
    before = {name: os.stat(work / name).st_mtime_ns for name in files_below(work)}
    os.remove(work / "bins/bin-00002.parquet")
    os.remove(tmp_path / "r.parquet")
    with caplog.at_level("INFO", "labelsieve"):
        scored = call()
    assert "resuming: 3 of 4 bins done" in caplog.text
    assert [b["bin"] for b in scored["bins"] if not b["is_resumed"]] == [2]
    changed = [name for name in files_below(work) if os.stat(work / name).st_mtime_ns != before[name]]
    assert changed == ["bins/bin-00002.json", "bins/bin-00002.parquet"]
    assert (tmp_path / "r.parquet").read_bytes() == examples.bytes()


def test_parts_of_another_run_are_not_used(nodes, examples, tmp_path):
    shared = on_ray.Settings(keep_work=True, work=tmp_path / "work")
    run = lambda seed: on_ray.score(*examples.files, tmp_path / f"{seed}.parquet", bins=2, seed=seed, settings=shared)
    run(5), run(6)
    assert (tmp_path / "5.parquet").read_bytes() == examples.bytes() != (tmp_path / "6.parquet").read_bytes()
    first, second = sorted((tmp_path / "work").iterdir(), key=os.path.getmtime)
    shutil.copy(second / "bins/bin-00001.parquet", first / "bins/bin-00001.parquet")  # somebody's mistake
    with pytest.raises(ValueError, match=r"bin-00001.parquet`: expected part 1 of 2 of run \w+, found part 1 of 2 of run \w+\nhint: "):
        run(5)
    (first / "bins/bin-00001.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match="bin-00001.parquet` cannot be read: .*\nhint: remove it"):
        run(5)


def test_inputs_that_changed_are_another_run(nodes, examples, tmp_path):
    files = [shutil.copy(path, tmp_path) for path in examples.files]
    run = lambda: on_ray.score(*files, tmp_path / "r.parquet", bins=2, seed=5, settings=KEEP)
    run()
    os.utime(files[1], ns=(1, 1))  # a clock that is decades behind: what is elsewhere is not older or newer, but other
    run()
    assert len(list((tmp_path / "r.parquet.parts").iterdir())) == 2
    assert (tmp_path / "r.parquet").read_bytes() == examples.bytes()


def test_a_task_that_runs_twice_writes_the_same_part(nodes, examples, tmp_path):
    on_ray.score(*examples.files, tmp_path / "r.parquet", bins=2, seed=5, settings=KEEP)
    work = parts_of(tmp_path)
    part, rows = work / "bins/bin-00001.parquet", sorted(str(path) for path in (work / "rows").glob("rows-*"))
    before = part.read_bytes()
    options = {"clean": examples.files[0], "pool": examples.files[1], "seed": 5, "device": "cpu"}
    share = Share(Storage(), str(work), options, Columns(), tuple(rows))
    share.score(1)
    share.score(1)
    assert part.read_bytes() == before


def test_a_driver_that_is_killed_is_resumed(nodes, slow, tmp_path):
    """Twice on the cluster, and then on one that the command starts for itself."""
    files, whole = slow
    words = ["score", "--clean", files[0], "--pool", files[1], "--bins", "4", "--method", "gcn", "-o", "r.parquet"]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    n_parts = lambda: len(list(tmp_path.glob("r.parquet.parts/*/bins/*.parquet")))
    for ended_by in (signal.SIGKILL, signal.SIGINT, None):
        n_before = n_parts()
        where = ["--num-cpus", "1"] if ended_by is None else ["--address", nodes.cluster.address]
        line = [sys.executable, "-m", "labelsieve.ray", *words, *where]
        driver = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
        if ended_by is not None:
            wait_until(lambda: n_parts() > n_before or driver.poll() is not None)
            driver.send_signal(ended_by)
        told = driver.communicate(timeout=120)[1]
        wait_until(lambda: not workers_at("bin"))
        assert (tmp_path / "r.parquet").exists() == (ended_by is None), told
        if n_before:
            assert f"resuming: {n_before} of 4 bins done" in told, told
        if ended_by == signal.SIGINT:
            assert driver.returncode == 130 and "interrupted; finished parts are kept in `" in told, told
    assert driver.returncode == 0 and (tmp_path / "r.parquet").read_bytes() == whole
    assert "written to `r.parquet`" in told and "the slowest of 4 bins:" in told


def wait_until(condition, timeout=120):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


def test_a_full_disk_is_an_error_that_says_so(nodes, examples, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        small = on_ray.Settings(work=disk)
        with pytest.raises(OSError, match=r"^rows 0 of 1: .*No space left on device"):
            on_ray.score(*examples.files, tmp_path / "r.parquet", bins=2, seed=5, settings=small)
        assert not [name for name in files_below(disk) if "rows" in name], "nothing half-written is left"
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        on_ray.score(*examples.files, tmp_path / "r.parquet", bins=2, seed=5, settings=small)
    finally:
        subprocess.run(["umount", disk], check=True)
    assert (tmp_path / "r.parquet").read_bytes() == examples.bytes()


def test_what_no_node_has_is_refused_instead_of_waited_for(examples, tmp_path):
    from labelsieve.ray._cluster import Cluster, Resources, Task

    class Fixed(Cluster):
        def __init__(self, nodes):
            self.is_fixed = True
            self.ray = type("Ray", (), {"nodes": staticmethod(lambda: nodes)})

    node = {"Alive": True, "Resources": {"CPU": 2.0, "memory": 8 << 30}}
    large = [Task("bin 3 of 8", print, (), 1, Resources(1, 0, 9 << 30))]
    with pytest.raises(ValueError, match="bin 3 of 8 needs 1 cores, 0 GPUs and 9,216 MiB on one node, and no node has them\nhint: "):
        Fixed([node])._check_room(large)
    Fixed([node, {"Alive": True, "Resources": {"CPU": 1.0, "memory": 10 << 30}}])._check_room(large)
    growing = Fixed([node])
    growing.is_fixed = False
    with pytest.warns(RuntimeWarning, match="no node has them; waiting until one joins"):
        growing._check_room(large)
