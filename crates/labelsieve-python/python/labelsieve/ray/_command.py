"""The command line: options to arguments, results to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Optional

from .._labelsieve import __version__
from ._options import CLUSTER, COMMANDS, add_options

#: The exit code of a command that Ctrl-C ended.
_INTERRUPTED = 130


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs a command; the exit code is its result."""
    options = vars(_parser().parse_args(arguments))
    command, as_json, quiet = options.pop("command"), options.pop("json"), options.pop("quiet")
    _tell_notes(quiet)
    try:
        summary = _run(command, options, quiet)
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "interrupted", _INTERRUPTED)
    except (ImportError, OSError, RuntimeError, ValueError, MemoryError) as error:
        return _say(f"error: {error}", 1)
    if as_json:
        print(json.dumps({"command": command, "version": __version__, **summary}, ensure_ascii=False))
    elif not quiet:
        _tell(command, summary, options["output"])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m labelsieve.ray", description="labelsieve on a Ray cluster")
    parser.add_argument("--version", action="version", version=f"labelsieve {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.about, description=command.about, allow_abbrev=False)
        add_options(one, command)
        one.add_argument("--json", action="store_true", help="print the result as JSON")
        one.add_argument("-q", "--quiet", action="store_true", help="print only warnings and errors")
    return parser


def _run(command: str, options: dict[str, Any], quiet: bool) -> dict[str, Any]:
    import labelsieve.ray as commands

    shared = {option.name: options.pop(option.name) for option in CLUSTER if option.name in options}
    if "storage_options" in shared:
        shared["storage_options"] = _storage_options(shared["storage_options"])
    progress = not quiet and sys.stderr is not None and sys.stderr.isatty()
    settings = commands.Settings(progress=progress, **shared)
    if command in ("score", "train"):
        options = {"clean": None, **options}
    if command == "embed":
        options = {"model": None, **options}
    summary: dict[str, Any] = getattr(commands, command)(settings=settings, **options)
    return summary


def _storage_options(text: str) -> dict[str, Any]:
    try:
        options = json.loads(text)
    except ValueError as error:
        raise ValueError(f"--storage-options: expected JSON, found `{text}`: {error}") from None
    if not isinstance(options, dict):
        raise ValueError(f"--storage-options: expected an object, found `{text}`")
    return options


def _tell(command: str, summary: dict[str, Any], output: str) -> None:
    from ._summary import slowest_bins

    if command == "score":
        n, classes, mean = (summary[name] for name in ("n_candidates", "n_classes", "mean_relevance"))
        _say(f"{n:,} candidates of {classes:,} classes, mean relevance {mean:.2f}; written to `{output}`")
        _say(f"the slowest of {len(summary['bins'])} bins:\n{slowest_bins(summary['bins'])}")
    elif command == "match":
        _say(f"{summary['n_candidates']:,} candidates of {summary['n_rows']:,} texts; written to `{output}`")
    elif command == "embed":
        _say(f"{summary['n_images']:,} images, {summary['dim']:,} features each, written to `{output}`")
    else:
        _say(f"classifier of {summary['n_classes']:,} classes with {summary['dim']:,} features written to `{output}`")


def _tell_notes(quiet: bool) -> None:
    """Notes and warnings as the command line of one machine prints them."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("labelsieve")
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    warnings.simplefilter("always", UserWarning)
    warnings.simplefilter("always", RuntimeWarning)
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)


def _say(text: str, code: int = 0) -> int:
    print(text, file=sys.stderr)
    return code
