"""Shared code of the comparisons: running and measuring the two programs, and the tables.

Only the standard library is imported here: the kernel counts a launcher's memory from before the exec, so no measured
peak can lie below its own (`floor_mib`, about 15 MiB).
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MIB = 1024.0  # ru_maxrss and /proc count KiB

# The instructions that each side may use. Ours has one variable. Of theirs, MKL makes PyTorch's products and ATen its other
# loops; faiss multiplies with the OpenBLAS 0.3.15 of its wheel, which knows no processor younger than itself and falls
# back to SSE there (`OPENBLAS_VERBOSE=2` says `Prescott`), so it is told at every level. The variables of MKL and OpenBLAS
# change how long a product takes; for those of ATen and faiss only the level that the library reports was seen to
# change. ONEDNN_MAX_CPU_ISA and FAISS_OPT_LEVEL changed neither and are left alone.
LEVELS = {
    "avx512": {"LABELSIEVE_CPU": "avx512", "OPENBLAS_CORETYPE": "SkylakeX"},
    "avx2": {"LABELSIEVE_CPU": "avx2", "OPENBLAS_CORETYPE": "Haswell", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
             "ATEN_CPU_CAPABILITY": "avx2", "FAISS_SIMD_LEVEL": "AVX2"},
    "plain": {"LABELSIEVE_CPU": "plain", "OPENBLAS_CORETYPE": "Nehalem", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
              "ATEN_CPU_CAPABILITY": "default", "FAISS_SIMD_LEVEL": "NONE"},
    "native": {},
}

# The photo sets, the network of each, and the column of the classes.
SETS = {
    "tiny": ("tiny-lowshot.parquet", "tiny-resnet10.safetensors", "wnid"),
    "fashion": ("fashion.parquet", "fashion-resnet10.safetensors", "article_type"),
}


class Failed(Exception):
    """A message for the user; nothing else is worth printing."""


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def size(text: str) -> int:
    """10k -> 10000, all -> 0."""
    if text == "all":
        return 0
    unit = {"k": 1000, "m": 1_000_000}.get(text[-1:].lower())
    return int(text[:-1]) * unit if unit else int(text)


def label(n: int) -> str:
    return f"{n // 1000}k" if n and n % 1000 == 0 else f"{n:,}"


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labelsieve"


def quiet(command: list, **more) -> None:
    """Runs a helper with its output on stderr."""
    command = [str(word) for word in command]
    if subprocess.run(command, stdout=sys.stderr, cwd=ROOT, **more).returncode != 0:
        raise Failed(f"`{' '.join(command)}` failed")


def comparison_python() -> str:
    """The interpreter that has faiss and PyTorch; makes its environment when there is none."""
    given = os.environ.get("LABELSIEVE_COMPARE_PYTHON")
    if given:
        if not shutil.which(given):
            raise Failed(f"LABELSIEVE_COMPARE_PYTHON is `{given}`, which is not a program")
        return given
    home = cache() / "compare-venv"
    python, wanted = home / "bin" / "python", (HERE / "requirements.txt").read_text()
    stamp = home / "installed.txt"  # written last, so a broken installation is made again
    if not (stamp.exists() and stamp.read_text() == wanted):
        note(f"installing faiss, scipy and PyTorch in {home} (some minutes, once)")
        quiet([sys.executable, "-m", "venv", "--clear", home])
        quiet([python, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt"])
        stamp.write_text(wanted)
    return str(python)


def our_program(given: str | None) -> str:
    """The labelsieve to measure; built when none is given."""
    if given is None:
        note("building labelsieve")
        quiet(["cargo", "build", "--release", "--quiet", "-p", "labelsieve-cli", "-p", "labelsieve-bench"])
        target = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")
        given = target / "release" / "labelsieve"
    path = Path(given).resolve()
    if not os.access(path, os.X_OK):
        raise Failed(f"`{path}` is not a program")
    if path.parent.name == "debug":
        raise Failed(f"`{path}` is a debug build, half as fast: expected one of `cargo build --release`")
    return str(path)


def bench_program(ours: str) -> str:
    """`labelsieve-bench`, which is beside the labelsieve that is measured."""
    path = Path(ours).with_name("labelsieve-bench")
    if not os.access(path, os.X_OK):
        raise Failed(f"`{path}` is not a program: build it with `cargo build --release -p labelsieve-bench`")
    return str(path)


def data_folder(given: str | None) -> Path | None:
    """The photo sets, where there are any."""
    folder = Path(given or os.environ.get("LABELSIEVE_DATA") or ROOT.parent / "shared" / "data")
    if folder.is_dir():
        return folder
    note(f"no photo sets in `{folder}`: real features are skipped (--data DIR or LABELSIEVE_DATA)")
    return None


def real_features(name: str, folder: Path, ours: str) -> Path | None:
    """A photo set as features, embedded once with the network that was trained for it."""
    photos, network, column = SETS[name]
    photos, network = folder / photos, ROOT / "models" / network
    if not photos.exists():
        note(f"`{photos}` is missing: {name} is skipped")
        return None
    key = "-".join(f"{path.stat().st_size}-{path.stat().st_mtime_ns // 10**9}" for path in (photos, network))
    features = cache() / "compare-features" / f"{name}-{key}.parquet"
    if not features.exists():
        features.parent.mkdir(parents=True, exist_ok=True)
        note(f"embedding {photos.name} with {network.name} into {features} (once)")
        quiet([ours, "embed", "--images", photos, "--model", network, "--label-column", column, "--output", features])
    return features


def environment(threads: int, level: str) -> dict[str, str]:
    """The environment of both sides: threads and instructions."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    return os.environ | {name: str(threads) for name in names} | LEVELS[level]


def levels_here() -> list[str]:
    """The best instructions of this machine and, where that is more, AVX2."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        flags = ""
    found = [level for level, flag in (("avx512", "avx512bw"), ("avx2", " avx2 ")) if flag in flags]
    return found or ["native"]


def measured(command: list, environment: dict[str, str], parse: bool = True) -> dict:
    """A command's JSON (with `parse`), its wall time and its peak memory as seen from outside: `outside_peak_mib` is the
    kernel's figure for all resident pages, `anonymous_peak_mib` what a look every 20 ms saw of those that no file backs."""
    command = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, cwd=ROOT, env=environment)
        anonymous, ended = [0.0], threading.Event()
        watcher = threading.Thread(target=watch_anonymous, args=(process.pid, anonymous, ended))
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        ended.set()
        watcher.join()
        process.returncode = os.waitstatus_to_exitcode(status)  # it is reaped; tell Popen
        if process.returncode != 0:
            raise Failed(f"`{' '.join(command)}` ended with status {process.returncode}")
        out.seek(0)
        text = out.read()
    try:
        report = json.loads(text) if parse else {}
    except json.JSONDecodeError as error:
        raise Failed(f"`{' '.join(command)}` printed no JSON: {error}; it printed {text[:200]!r}") from error
    return report | {
        "wall_seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "outside_peak_mib": usage.ru_maxrss / MIB,
        "anonymous_peak_mib": anonymous[0],
        "read_gib": usage.ru_inblock * 512 / 2**30,
    }


class MemoryGroup:
    """A control group whose processes, and the pages of files that they read and write, are limited to this many bytes of memory.
    Only root of Linux can make one; elsewhere nothing is limited."""

    def __init__(self, limit: int):
        v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
        self.folder = None
        for root, names in ((v1, ("memory.limit_in_bytes", "memory.max_usage_in_bytes")), (v2, ("memory.max", "memory.peak"))):
            folder = root / f"labelsieve-{os.getpid()}"
            try:
                folder.mkdir()
                (folder / names[0]).write_text(str(limit))
            except OSError:
                if folder.is_dir():
                    folder.rmdir()
                continue
            self.folder, self.peak = folder, names[1]
            return
        note("no control group could be made (root, Linux): memory is measured, not limited")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.folder:
            self.folder.rmdir()

    def command(self, command: list) -> list:
        if not self.folder:
            return command
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", *command]

    def peak_mib(self) -> float | None:
        return int((self.folder / self.peak).read_text()) / 2**20 if self.folder else None


def watch_anonymous(pid: int, most: list[float], ended: threading.Event) -> None:
    """Records the peak RssAnon of a process (Linux only)."""
    while not ended.wait(0.02):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("RssAnon:"):
                most[0] = max(most[0], int(line.split()[1]) / MIB)


def peak(level: str, threads: int) -> dict | None:
    """The peak speed of this machine's cores and memory, by peak.c; empty without a C compiler."""
    flags = {"avx512": ["-mavx512f", "-mavx512bw", "-mfma"], "avx2": ["-mavx2", "-mfma"],
             "native": ["-march=native"]}.get(level, [])
    compiler = shutil.which("cc")
    if not compiler:
        note("no C compiler: the machine's peak is not measured")
        return None
    with tempfile.TemporaryDirectory(prefix="labelsieve-peak-") as folder:
        program = Path(folder) / "peak"
        quiet([compiler, "-O3", *flags, "-pthread", "-o", program, HERE / "peak.c"])
        return measured([program, threads], dict(os.environ))


def processor() -> str:
    """The processor's name, if known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def floor_mib() -> float | None:
    """The launcher's resident memory, below which no measured peak can lie."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def table(head: list[str], body: list[list[str]], markdown: bool) -> str:
    """Rows for a person; columns that are empty throughout are left out."""
    kept = [column for column in range(len(head)) if any(line[column] for line in body)]
    lines = [[line[column] for column in kept] for line in [head, *body]]
    if markdown:
        lines.insert(1, ["---"] * len(kept))
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
    widths = [max(len(line[column]) for line in lines) for column in range(len(kept))]
    text = [" | ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines]
    text.insert(1, "-|-".join("-" * width for width in widths))
    return "\n".join(text)
