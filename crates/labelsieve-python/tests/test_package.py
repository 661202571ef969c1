"""The package as a whole: examples in docstrings, types, the command, the notebook."""

import doctest
import importlib
import importlib.metadata
import os
import pkgutil
import re
import signal
import subprocess
import sys

import pytest
from conftest import REPOSITORY

import labelsieve

MODULES = ["labelsieve"] + [
    f"labelsieve.{m.name}" for m in pkgutil.iter_modules(labelsieve.__path__) if m.name not in ("__main__", "_labelsieve")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    if name in ("labelsieve._graph", "labelsieve._handoffs"):
        pytest.importorskip("scipy")
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_every_public_function_has_an_example_or_reads_a_file():
    without = [
        name
        for name in labelsieve.__all__
        if callable(getattr(labelsieve, name)) and ">>>" not in (getattr(labelsieve, name).__doc__ or "")
    ]
    assert without == ["CleanlabInputs", "DemoData", "Examples", "Method", "Run", "SavedClassifier", "embed_files",
                       "embed_text_files", "finetune_files", "get_num_threads", "pretrain_files", "read_candidates", "read_features", "read_run",
                       "read_truth", "review_files", "run_files", "write_relevance"]


def test_types_hold_and_stubs_fit_the_compiled_module(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    environment = {**os.environ, "MYPY_CACHE_DIR": str(tmp_path)}
    run = lambda *words: subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, env=environment, cwd=REPOSITORY
    )
    checked = run("mypy", "-p", "labelsieve")
    assert checked.returncode == 0, checked.stdout
    stubs = run("mypy.stubtest", "labelsieve._labelsieve", "--ignore-disjoint-bases")
    assert stubs.returncode == 0, stubs.stdout + stubs.stderr


def script():
    return os.path.join(os.path.dirname(sys.executable), "labelsieve")


def test_the_command_line_is_installed():
    version = subprocess.run([script(), "--version"], capture_output=True, text=True, check=True).stdout
    assert version == f"labelsieve {labelsieve.__version__}\n"
    assert importlib.metadata.version("labelsieve") == labelsieve.__version__
    wrong = subprocess.run([script(), "no-such-command"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "no-such-command" in wrong.stderr
    failing = subprocess.run([script(), "evaluate", "--model", "m.safetensors", "--test", "none.npz"], capture_output=True, text=True)
    assert failing.returncode == 1 and failing.stderr.startswith("error: ") and "hint:" in failing.stderr
    module = subprocess.run([sys.executable, "-m", "labelsieve", "--help"], capture_output=True, text=True, check=True)
    assert "score" in module.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_control_c_ends_the_command(tmp_path):
    """Python would only note the signal; nothing of Python runs while the command does."""
    running = subprocess.Popen([script(), "demo", "--dir", tmp_path], stderr=subprocess.PIPE, text=True)
    assert running.stderr.readline()  # it has begun
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == -signal.SIGINT


def test_the_notebook_runs(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    for needed in ("ipykernel", "matplotlib", "pandas", "sklearn"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    path = REPOSITORY / "crates/labelsieve-python/examples/first_steps.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    images = [o for cell in notebook.cells for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    assert len(images) >= 3


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_the_snippets_of_the_documents_run(document, tmp_path):
    for needed in ("scipy", "sklearn", "pandas"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    snippets = re.findall(r"```python\n(.*?)```", (REPOSITORY / document).read_text(), re.DOTALL)
    assert snippets
    code = "\n".join(snippets)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
