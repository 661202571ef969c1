"""The options of each command: those of the command line of one machine, as that defines them, and those of the cluster."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

from .. import _jobs, _labelsieve

Kind = Union[type, tuple[str, ...], Callable[[str], Any]]


class Option(NamedTuple):
    """An argument of a function: its name there, what stands for its value in ``--help``, and what it is."""

    name: str
    metavar: Optional[str]
    help: str
    kind: Kind = str
    spelling: Optional[str] = None
    takes_several: bool = False

    @property
    def flag(self) -> str:
        return self.spelling or "--" + self.name.replace("_", "-")


class Command(NamedTuple):
    """A command: the function of one machine that it is like, and its options."""

    about: str
    job: Callable[..., Any]
    #: Its name on the command line of one machine.
    name: str
    #: Options that it cannot do without.
    needed: Sequence[str]
    #: Options of one machine that make no sense on a cluster, each with the reason.
    without: Mapping[str, str]
    #: Options that only the cluster has.
    own: Sequence[Option]

    @property
    def options(self) -> list[Option]:
        """Those of the command line that the function takes."""
        taken = inspect.signature(self.job).parameters.keys() - self.without.keys()
        described = json.loads(_labelsieve.describe_options(self.name))
        options = [_option(one) for one in described if one["flag"] is not None]
        return [option for option in options if option.name in taken]

    @property
    def required(self) -> list[Option]:
        by_name = {option.name: option for option in self.options}
        return [by_name[name] for name in self.needed]

    @property
    def optional(self) -> list[Option]:
        return [option for option in self.options if option.name not in self.needed]


def _option(described: Mapping[str, Any]) -> Option:
    """An option as the command line describes it."""
    name = described["argument"]
    default = described["default"]
    help = _HELP.get(name, described["help"]) + ("" if default is None else f" [default: {default}]")
    kinds: dict[str, Kind] = {"switch": bool, "integer": int, "number": float, "text": str}
    kind = _READ.get(name) or tuple(described["choices"]) or kinds[described["kind"]]
    several = described["is_list"] and name not in _READ
    metavar = None if described["choices"] else described["metavar"]
    return Option(name, metavar, help, kind, described["flag"], several)


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def numbers(text: str) -> Any:
    found = [float(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


def size(text: str) -> Any:
    sides = [int(side) for side in text.split("x")]
    return sides[0] if len(sides) == 1 else tuple(sides)


#: How values are read that are written in a form of their own.
_READ: dict[str, Kind] = {"text_columns": names, "keep": names, "image_size": size, "image_mean": numbers, "image_std": numbers}

#: Options that mean something else to a cluster.
_HELP = {"device": "Device: auto, cpu, cuda or cuda:1; auto is the GPU with --num-gpus, else the CPU"}

_CUT = "the cluster cuts the work itself"
COMMANDS = {
    "match": Command(
        "find the candidates of each class: a task for each shard of the texts",
        _jobs.match_files,
        "match",
        ("classes", "text", "output"),
        {"shard": _CUT},
        [Option("shards", "N", "Shards that the texts are cut into [default: one per 256 MiB]", int)],
    ),
    "embed": Command(
        "compute features of images: a task for each .tar or .parquet file",
        _jobs.embed_files,
        "embed",
        ("images", "output"),
        {"fit_pca": "a PCA is fitted to all images at once", "pca_output": "a PCA is fitted to all images at once"},
        [],
    ),
    "score": Command(
        "score the relevance of every candidate to its class: a task for each bin of classes",
        _jobs.score_files,
        "score",
        ("pool", "output"),
        {
            "plan": _CUT,
            "bin": _CUT,
            "shard": _CUT,
            "neighbours_approximate": "results would depend on how classes are packed",
            "memory": "the cluster's own option of that name limits a bin",
            "scratch": "every task has a folder of its own",
            "dry_run": "the plan tells what bins take",
        },
        [
            Option("bins", "N", "Bins that the classes are packed into [default: four per task that can run at a time]", int),
            Option("memory", "SIZE", "Memory that a bin should keep within, e.g. 8GiB"),
        ],
    ),
    "train": Command(
        "train a classifier with every candidate weighted by its relevance, in one task",
        _jobs.train_files,
        "train",
        ("pool", "relevance", "output"),
        {},
        [Option("memory", "BYTES", "Memory that the task occupies", int)],
    ),
}

#: Arguments of :class:`labelsieve.ray.Settings`.
CLUSTER = [
    Option("address", "ADDRESS", "Ray cluster: auto, local, ray://HOST:PORT [default: RAY_ADDRESS, or a new one here]"),
    Option("num_cpus", "N", "Cores of a cluster that is started here [default: all]", int),
    Option("task_cpus", "N", "Cores and threads of a task [default: 1]", float),
    Option("num_gpus", "N", "GPUs of a task [default: 0]", float),
    Option("max_retries", "N", "Times that a task whose process or node died is tried again [default: 3]", int),
    Option("work", "FOLDER", "Folder of parts, which all nodes reach [default: OUTPUT.parts]"),
    Option("keep_work", None, "Keep the parts after the result is written", bool),
    Option("storage_options", "JSON", "What the file system of URLs is opened with [default: by the environment]"),
]


def add_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """The options of a command, and those of the cluster."""
    for option in command.required:
        _add(parser, option, required=True)
    for option in command.optional:
        _add(parser, option)
    cluster = parser.add_argument_group("cluster")
    for option in (*command.own, *CLUSTER):
        _add(cluster, option)


def _add(parser: Any, option: Option, **settings: Any) -> None:
    flags = ["-o", option.flag] if option.name == "output" else [option.flag]
    settings = {"dest": option.name, "help": option.help.replace("%", "%%"), "default": argparse.SUPPRESS, **settings}
    if option.kind is bool:
        parser.add_argument(*flags, action="store_true", **settings)
        return
    if isinstance(option.kind, tuple):
        settings["choices"] = option.kind
    else:
        settings["type"] = option.kind
    if option.takes_several:
        settings.update(nargs="+", action="extend")
    parser.add_argument(*flags, metavar=option.metavar, **settings)
