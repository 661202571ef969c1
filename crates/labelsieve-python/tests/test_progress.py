"""`progress=True` with and without tqdm."""

import subprocess
import sys

import pytest

WITHOUT_TQDM = """
import sys
sys.modules["tqdm"] = None  # as if it were not installed
import labelsieve
data = labelsieve.demo_data(n_classes=3)
for _ in range(2):
    labelsieve.Cleaner(progress=True).fit(data.X, data.y, is_clean=data.is_clean)
print(len(labelsieve.relevance(data.X[:2], data.X[2:50], progress=True)))
"""


def test_without_tqdm_true_shows_plain_progress_after_one_note():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TQDM], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "48\n"), done.stderr
    note, *lines = done.stderr.splitlines()
    assert note == "labelsieve: plain progress, since tqdm is not installed (pip install tqdm)"
    assert all(line.startswith("labelsieve: ") and line.endswith(" rows") for line in lines), lines
    assert sum(line.startswith("labelsieve: 100 % of ") for line in lines) == 3, "each to its end"
    assert len(lines) <= 3 * 11, "a line for every tenth where stderr is no terminal"


def test_on_a_terminal_the_plain_line_is_rewritten(monkeypatch, capsys):
    from labelsieve import _progress

    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(_progress._Line, "noted", False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    tell = _progress.as_progress(True)
    for done in (0, 1, 2, 250, 400):
        tell(done, 400)
    told = capsys.readouterr().err.split("\n", 1)[1]
    assert told == (
        "\rlabelsieve:   0 % of 400 rows\rlabelsieve:  62 % of 400 rows\rlabelsieve: 100 % of 400 rows\n"
    ), "a step of one percent each, and the line ended"


def test_a_new_bar_is_closed_and_that_of_the_user_is_not(monkeypatch):
    auto = pytest.importorskip("tqdm.auto", reason="tqdm is not installed")
    from labelsieve._progress import as_progress

    made = []

    class Recorded(auto.tqdm):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **settings)
            self.closed = False
            made.append(self)

        def close(self):
            self.closed = True
            super().close()

    monkeypatch.setattr(auto, "tqdm", Recorded)
    as_progress(True)(5, 5)
    assert [bar.closed for bar in made] == [True]
    given = Recorded()
    as_progress(given)(5, 5)
    assert not given.closed
    given.close()
