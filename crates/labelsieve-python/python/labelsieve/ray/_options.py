"""The options of each command: those of the command line of one machine, and those of the cluster."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional, Union, get_args

from .. import _jobs
from .._choice import ClassifierName, Method, Rule, StoredAs, TextFormat

Kind = Union[type, tuple[str, ...], Callable[[str], Any]]


class Option(NamedTuple):
    """An argument of a function: its name there, what stands for its value in ``--help``, and what it is."""

    name: str
    metavar: Optional[str]
    help: str
    kind: Kind = str

    @property
    def flag(self) -> str:
        renamed = {"lam": "lambda", "text_columns": "text-column"}
        return "--" + renamed.get(self.name, self.name.replace("_", "-"))


class Command(NamedTuple):
    """A command: the function of one machine that it is like, and its options."""

    about: str
    job: Callable[..., Any]
    required: Sequence[Option]
    optional: Sequence[Option]
    #: Options that only the cluster has.
    own: Sequence[Option]


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def numbers(text: str) -> Any:
    found = [float(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


def size(text: str) -> Any:
    sides = [int(side) for side in text.split("x")]
    return sides[0] if len(sides) == 1 else tuple(sides)


#: Values that may be given several of, after the option or with the option again.
SEVERAL = ("text", "images", "guard_features", "where")


_POOLS = [
    Option("class_text", "FILE", "class texts from `labelsieve embed-text`: one more clean example of each class"),
    Option("clean_labels", "FILE", "classes of the clean examples, for .npy: integers in .npy, or text with one per line"),
    Option("pool_labels", "FILE", "labels of the candidates, for .npy"),
    Option("allow_mixed", None, "accept features of different networks in one run", bool),
]
_COLUMNS = [
    Option("embedding_column", "NAME", "embedding column [default: embedding, features or vector]"),
    Option("label_column", "NAME", "class column [default: class or label]"),
    Option("id_column", "NAME", "id column [default: id, key, uid or image_path]"),
]
_DEVICE = Option("device", "DEVICE", "device: auto, cpu, cuda or cuda:1; auto is the GPU with --num-gpus, else the CPU")
_SEED = Option("seed", "N", "random seed; the same seed gives the same result", int)
_CLEAN = Option("clean", "FILE", "clean examples with their classes: .npz, .npy, .parquet or a clip-retrieval folder")
_POOL = Option("pool", "FILE", "candidates, in the same formats")

COMMANDS = {
    "match": Command(
        "find the candidates of each class: a task for each shard of the texts",
        _jobs.match_files,
        [
            Option("classes", "FILE", "classes and their names: .toml, .csv, or .txt with one WordNet synset per line"),
            Option("text", "FILE", "texts: YFCC100M metadata, CSV, TSV, JSON Lines or Parquet, plain or compressed; globs"),
            Option("output", "FILE", "output file, .parquet or .csv"),
        ],
        [
            Option("text_columns", "NAME", "columns to search, most trusted first", names),
            Option("id_column", "NAME", "id column [default: id, key, uid, image_path or file_name]"),
            Option("rule", "RULE", "rule for matching names in texts", get_args(Rule)),
            Option("format", "FORMAT", "format of the texts [default: by file name and content]", get_args(TextFormat)),
            Option("percent_encoded", None, "decode percent-encoded texts; always on for YFCC100M", bool),
            Option("strict", None, "stop at the first malformed row or damaged file instead of skipping it", bool),
            Option("keep", "NAMES", "columns to carry along to the candidates", names),
            Option("download_list", "FILE", "write each matched photo once, as img2dataset reads it (.parquet)"),
            Option("url_column", "NAME", "column of the photos' URLs [default: url, URL, image_url or downloadurl]"),
            Option("stats", "FILE", "write the number of candidates per class as JSON (.json)"),
            Option("guard_features", "FILE", "features of the clean and test examples, which must not be among the candidates"),
            Option("features", "FILE", "features of the candidates, by the same network"),
            Option("near_duplicate", "COSINE", "minimum cosine similarity of two copies of the same photo", float),
            Option("drop_leaks", None, "drop copies instead of flagging them", bool),
            _POOLS[3],
        ],
        [Option("shards", "N", "shards that the texts are cut into [default: one per 256 MiB]", int)],
    ),
    "embed": Command(
        "compute features of images: a task for each .tar or .parquet file",
        _jobs.embed_files,
        [
            Option("images", "SOURCE", "images: .tar and .parquet files, folders of these or of images, or patterns"),
            Option("output", "FILE", "output file, .parquet"),
        ],
        [
            Option("model", "NAME|FILE|FOLDER", "network, as `labelsieve embed` takes it [default: efficientnet-lite0]"),
            Option("image_column", "NAME", "image column; in a tar, the extension of the image files"),
            Option("id_column", "NAME", "id column [default: id, key, uid, image_path or file_name]"),
            Option("label_column", "NAME", "class column; in a tar, a key of the JSON files or an extension"),
            Option("where", "COLUMN=VALUE", "use only rows with one of these values; repeatable"),
            Option("strict", None, "stop at the first unreadable image or damaged file instead of skipping it", bool),
            Option("image_size", "HxW", "image size, e.g. 224 or 80x60 [default: the network's training size]", size),
            Option("image_mean", "R,G,B", "mean of red, green and blue, for .onnx", numbers),
            Option("image_std", "R,G,B", "standard deviation of red, green and blue, for .onnx", numbers),
            Option("onnx_output", "NAME", "output that holds the features, for .onnx"),
            Option("pca", "FILE", "PCA to apply [default: the one in the network file, if any]"),
            Option("dtype", "TYPE", "precision of stored features", get_args(StoredAs)),
            Option("batch", "N", "batch size", int),
            _DEVICE,
        ],
        [],
    ),
    "score": Command(
        "score the relevance of every candidate to its class: a task for each bin of classes",
        _jobs.score_files,
        [_POOL, Option("output", "FILE", "output file, .parquet or .csv, with one row per example and class")],
        [
            _CLEAN,
            *_POOLS,
            *_COLUMNS,
            Option("candidates", "FILE", "candidates of each class, from `match` [default: the labels of the pool]"),
            Option("base", "FILE", "base classes to compare candidates with"),
            Option("decisions", "FILE", "decisions about candidates"),
            Option("method", "METHOD", "method for scoring relevance", get_args(Method)),
            Option("lam", "λ", "weight of the candidates in the loss of auto, gcn and mlp", float),
            Option("beta", "β", "relevance of every candidate with `--method beta`", float),
            Option("neighbours", "N", "neighbours per example in the graph", int),
            _SEED,
            _DEVICE,
        ],
        [
            Option("bins", "N", "bins that the classes are packed into [default: four per task that can run at a time]", int),
            Option("memory", "SIZE", "memory that a bin should keep within, e.g. 8GiB"),
        ],
    ),
    "train": Command(
        "train a classifier with every candidate weighted by its relevance, in one task",
        _jobs.train_files,
        [
            _POOL,
            Option("relevance", "FILE", "relevance file from `score`"),
            Option("output", "FILE", "output file (.safetensors)"),
        ],
        [
            _CLEAN,
            *_POOLS,
            *_COLUMNS,
            Option("decisions", "FILE", "decisions about candidates [default: those of the relevance file]"),
            Option("classifier", "KIND", "kind of classifier", get_args(ClassifierName)),
            Option("base", "FILE", "base classifier to extend"),
            Option("batch_size", "N", "batch size, for cosine [default: 512]", int),
            Option("epochs", "N", "epochs, for cosine [default: 30]", int),
            Option("scale", "S", "scale of the logits", float),
            Option("backbone", "NAME", "name of the backbone, stored in the file"),
            _SEED,
            _DEVICE,
        ],
        [Option("memory", "BYTES", "memory that the task occupies", int)],
    ),
}

#: Arguments of :class:`labelsieve.ray.Settings`.
CLUSTER = [
    Option("address", "ADDRESS", "Ray cluster: auto, local, ray://HOST:PORT [default: RAY_ADDRESS, or a new one here]"),
    Option("num_cpus", "N", "cores of a cluster that is started here [default: all]", int),
    Option("task_cpus", "N", "cores and threads of a task [default: 1]", float),
    Option("num_gpus", "N", "GPUs of a task [default: 0]", float),
    Option("max_retries", "N", "times that a task whose process or node died is tried again [default: 3]", int),
    Option("work", "FOLDER", "folder of parts, which all nodes reach [default: OUTPUT.parts]"),
    Option("keep_work", None, "keep the parts after the result is written", bool),
    Option("storage_options", "JSON", "what the file system of URLs is opened with [default: by the environment]"),
]


def add_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """The options of a command, with the defaults of its function."""
    parameters = inspect.signature(command.job).parameters
    for option in command.required:
        _add(parser, option, required=True)
    for option in (option for option in command.optional if option.name in parameters):
        default = parameters[option.name].default
        is_plain = isinstance(default, (str, int, float)) and not isinstance(default, bool)
        shown = f" [default: {default:g}]" if isinstance(default, float) else f" [default: {default}]" if is_plain else ""
        _add(parser, option, help=option.help + shown)
    cluster = parser.add_argument_group("cluster")
    for option in (*command.own, *CLUSTER):
        _add(cluster, option)


def _add(parser: Any, option: Option, **settings: Any) -> None:
    flags = ["-o", option.flag] if option.name == "output" else [option.flag]
    settings = {"dest": option.name, "help": option.help, "default": argparse.SUPPRESS, **settings}
    settings["help"] = settings["help"].replace("%", "%%")
    if option.kind is bool:
        parser.add_argument(*flags, action="store_true", **settings)
        return
    if isinstance(option.kind, tuple):
        settings["choices"] = option.kind
    else:
        settings["type"] = option.kind
    if option.name in SEVERAL:
        settings.update(nargs="+", action="extend")
    parser.add_argument(*flags, metavar=option.metavar, **settings)
