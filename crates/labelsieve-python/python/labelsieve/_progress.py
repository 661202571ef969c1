"""Progress of long work: a function, a tqdm bar, or a plain line."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Union

Progress = Union[bool, Callable[[int, int], object], Any, None]


def as_progress(progress: Progress) -> Optional[Callable[[int, int], object]]:
    """A function of (done, total) from such a function, a tqdm bar, or True for a new bar."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return _new_bar()
    if hasattr(progress, "update") and hasattr(progress, "total"):
        return _Bar(progress)
    if not callable(progress):
        found = type(progress).__name__
        raise TypeError(f"progress: expected True, a function of (done, total) or a tqdm bar, found {found}")
    return progress


class Stretches:
    """Progress of work in several stretches, each from 0 to its own total; a new bar for each, where the bar is ours."""

    def __init__(self, progress: Progress) -> None:
        self.is_ours = progress is True
        self.tell = None if self.is_ours else as_progress(progress)

    def begin(self, unit: str) -> None:
        if self.is_ours:
            self.tell = _new_bar(unit)

    def __call__(self, done: int, total: int) -> None:
        if self.tell is not None:
            self.tell(done, total)


def _new_bar(unit: str = "rows") -> Callable[[int, int], object]:
    """A bar if tqdm is installed, otherwise a line of text."""
    try:
        from tqdm.auto import tqdm

        return _Bar(tqdm(unit=unit, unit_scale=True), close=True)
    except ImportError:
        return _Line(unit)


class _Bar:
    """Updates a tqdm bar; closes it at the end if it is ours."""

    def __init__(self, bar: Any, close: bool = False) -> None:
        self.bar = bar
        self.close = close

    def __call__(self, done: int, total: int) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)
        if done == total:
            self.bar.refresh()
            if self.close:
                self.bar.close()


class _Line:
    """A percentage on stderr: one line that is rewritten on a terminal, otherwise a line every 10 %."""

    noted = False

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.step = 1 if self.on_terminal else 10
        self.shown = -1
        if not _Line.noted:
            _Line.noted = True
            self._write("labelsieve: plain progress, since tqdm is not installed (pip install tqdm)\n")

    def __call__(self, done: int, total: int) -> None:
        reached = 100 * done // total // self.step
        if reached <= self.shown:
            return
        self.shown = reached
        start, end = ("\r", "\n" if done == total else "") if self.on_terminal else ("", "\n")
        self._write(f"{start}labelsieve: {100 * done // total:3} % of {total:,} {self.unit}{end}")

    @staticmethod
    def _write(text: str) -> None:
        if sys.stderr is not None:  # None in a process without a console
            sys.stderr.write(text)
            sys.stderr.flush()
