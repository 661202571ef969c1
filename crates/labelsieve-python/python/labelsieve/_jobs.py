"""From files to files: the commands of the command line as functions."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional, Union

from . import _labelsieve
from ._arrays import as_seed
from ._choice import ClassifierName, Method, OnEmpty, Rule, SoftmaxMode, StoredAs, TextFormat, as_choice
from ._files import Path
from ._progress import Progress, Stretches
from ._relevance import _count, _number, as_device, check_base

Paths = Union[Path, Iterable[Path]]
Names = Union[str, Iterable[str]]
Shard = Union[str, tuple[int, int]]


def match_files(
    classes: Path,
    text: Paths,
    output: Path,
    *,
    rule: Rule = "phrase",
    text_columns: Names = (),
    id_column: Optional[str] = None,
    format: Optional[TextFormat] = None,
    percent_encoded: bool = False,
    strict: bool = False,
    keep: Names = (),
    download_list: Optional[Path] = None,
    url_column: Optional[str] = None,
    shard: Optional[Shard] = None,
    stats: Optional[Path] = None,
    guard_features: Paths = (),
    features: Optional[Path] = None,
    near_duplicate: float = 0.95,
    drop_leaks: bool = False,
    allow_mixed: bool = False,
    progress: Progress = None,
) -> dict[str, Any]:
    """Finds the candidates of each class in files of any size, as ``labelsieve match`` does.

    Parameters
    ----------
    classes : path
        The classes and their names: .toml, .csv, or .txt with one WordNet synset per line.
    text : path or paths
        Texts: CSV, TSV, JSON Lines, Parquet or YFCC100M metadata, also compressed; folders of img2dataset or
        clip-retrieval, or of images with a metadata file; patterns of these.
    output : path
        File of candidates to write, .parquet or .csv.
    rule : {"phrase", "plural", "any-word", "substring"}
        When a text contains a name.
    text_columns, id_column : optional
        Columns to search, in order of trust, and the one that names the example, where they are not the usual ones.
    format : {"yfcc", "csv", "tsv", "jsonl", "parquet"}, optional
        By default, what file name and content say.
    percent_encoded : bool
        Texts are written as in URLs.
    strict : bool
        Stop at the first malformed row or damaged file instead of skipping it.
    keep : str or list of str
        Columns of the texts to add to the candidates.
    download_list : path, optional
        Where the photos of the candidates go, each once, as a list for img2dataset (.parquet or .csv).
    url_column : str, optional
        The column of their URLs, where it is not called ``url``, ``URL``, ``image_url`` or ``downloadurl``.
    shard : str or (int, int), optional
        Search one of N shards of the texts: ``"0/8"`` or ``(0, 8)`` is the first of eight. The output is then a part for
        :func:`merge_files`; one that is complete already is left as it is.
    stats : path, optional
        Where the number of candidates per class goes, as JSON.
    guard_features, features : paths and path, optional
        Features of clean and test examples, and those of the candidates: copies of the former are flagged.
    near_duplicate : float, default 0.95
        Cosine from which two examples count as the same photo.
    drop_leaks : bool
        Leave copies out instead of flagging them.
    allow_mixed : bool
        Accept features of different networks in one run.
    progress : callable, tqdm bar or True, optional
        ``progress(done, total)``, in MiB.

    Returns
    -------
    dict
        What ``labelsieve match --json`` prints: candidates per class, rows, malformed rows, damaged files.

    Examples
    --------
    >>> import labelsieve, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> classes, text = os.path.join(folder, "classes.toml"), os.path.join(folder, "captions.csv")
    >>> _ = open(classes, "w").write('[[class]]\\nid = "owl"\\nnames = ["owl"]\\n')
    >>> _ = open(text, "w").write("id,caption\\na,an owl\\nb,a cat\\n")
    >>> labelsieve.match_files(classes, text, os.path.join(folder, "candidates.parquet"))["n_candidates"]
    1
    """
    if url_column is not None and download_list is None:
        raise ValueError("url_column: expected none without a download_list")
    if bool(_paths(guard_features)) != (features is not None):
        raise ValueError("guard_features and features: expected both or neither")
    options = {
        "classes": _input("classes", classes),
        "text": [_input("text", path) for path in _paths(text)],
        "output": _output("output", output),
        "rule": as_choice("rule", rule, Rule),
        "text_columns": _names(text_columns),
        "id_column": id_column,
        "format": None if format is None else as_choice("format", format, TextFormat),
        "percent_encoded": percent_encoded,
        "strict": strict,
        "keep": _names(keep),
        "download_list": None if download_list is None else _output("download_list", download_list),
        "url_column": url_column,
        "shard": None if shard is None else _shard("shard", shard),
        "stats": None if stats is None else _output("stats", stats),
        "guard_features": _paths(guard_features),
        "features": features,
        "near_duplicate": _share("near_duplicate", near_duplicate),
        "drop_leaks": drop_leaks,
        "allow_mixed": allow_mixed,
    }
    return _run("match", options, progress)


def embed_files(
    model: Optional[Path],
    images: Paths,
    output: Path,
    *,
    image_column: Optional[str] = None,
    id_column: Optional[str] = None,
    label_column: Optional[str] = None,
    where: Names = (),
    strict: bool = False,
    image_size: Union[int, tuple[int, int], None] = None,
    image_mean: Union[float, Sequence[float], None] = None,
    image_std: Union[float, Sequence[float], None] = None,
    onnx_output: Optional[str] = None,
    pca: Optional[Path] = None,
    fit_pca: Optional[int] = None,
    pca_output: Optional[Path] = None,
    dtype: StoredAs = "f32",
    batch: int = 64,
    on_empty: OnEmpty = "refuse",
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Turns images into features of unit length, as ``labelsieve embed`` does. A run that was killed is resumed.

    Parameters
    ----------
    model : str, path or None
        Network: ``"efficientnet-lite0"`` (also for None), which is built in; a file (.safetensors) of ``labelsieve pretrain``
        or with the names of torchvision's ResNet-18 or -50; the folder of a vision transformer from
        the hub; or an .onnx file.
    images : path or paths
        Folders (one per class, or with a metadata file), .parquet files with image bytes, .tar files, image files, or
        patterns of these.
    output : path
        Features to write: .parquet with ids and classes, .npz or .npy.
    image_column, id_column, label_column : str, optional
        Columns of image bytes, names and classes, where they are not the usual ones.
    where : str or strings
        Only images whose column has this value, or one of several: ``"split=train,val"``.
    strict : bool
        Stop at the first image or file that cannot be read.
    image_size : int or (height, width), optional
        What images are scaled to; by default what the network was trained on.
    image_mean, image_std : float or three floats, optional
        How pixels from 0 to 1 are normalised, for .onnx; by default as the file beside it says, else ImageNet's.
    onnx_output : str, optional
        Output that holds the features, for .onnx; by default the only one with a row per image.
    pca : path, optional
        Reduce features with this PCA; by default with the one in the network's file, if any.
    fit_pca, pca_output : int and path, optional
        Fit a PCA of this width on these images, write it there, and reduce their features with it.
    dtype : {"f32", "f16"}
        How numbers are stored.
    batch : int, default 64
        Images that go through the network together.
    on_empty : {"refuse", "write"}
        What becomes of images of which none can be read: an error, or a file without rows, where it is one of many.
    device, progress
        As in :func:`labelsieve.relevance`; progress is in images.

    Returns
    -------
    dict
        What ``labelsieve embed --json`` prints: images, numbers per row, what was skipped and where it is listed.
    """
    if (fit_pca is None) != (pca_output is None) or (fit_pca is not None and pca is not None):
        raise ValueError("fit_pca and pca_output: expected both or neither, and not with pca")
    options = {
        "model": model,
        "images": _paths(images),
        "output": _output("output", output),
        "image_column": image_column,
        "id_column": id_column,
        "label_column": label_column,
        "where": _names(where),
        "strict": strict,
        "image_size": None if image_size is None else _size(image_size),
        "image_mean": None if image_mean is None else _numbers(_channels("image_mean", image_mean)),
        "image_std": None if image_std is None else _numbers(_deviations("image_std", image_std)),
        "onnx_output": onnx_output,
        "pca": pca,
        "fit_pca": None if fit_pca is None else _count("fit_pca", fit_pca),
        "pca_output": None if pca_output is None else _output("pca_output", pca_output),
        "dtype": as_choice("dtype", dtype, StoredAs),
        "batch": _at_most("batch", _count("batch", batch), 1 << 16),
        "may_be_empty": as_choice("on_empty", on_empty, OnEmpty) == "write",
        "device": as_device(device),
    }
    summary = _run("embed", options, progress)
    if summary["n_skipped"]:
        n, listed = summary["n_skipped"], summary["skipped_list"]
        warnings.warn(f"{n} of {n + summary['n_images']} images were skipped; `{listed}` says why", stacklevel=2)
    return summary


def embed_text_files(
    model: Path,
    classes: Path,
    output: Path,
    *,
    templates: Names = "a photo of a {name}.",
    dtype: StoredAs = "f32",
    progress: Progress = None,
) -> dict[str, Any]:
    """Turns class names into features of unit length, one row per class, as ``labelsieve embed-text`` does.

    They are in the space of the photos that the same model embeds, for ``class_text`` of :func:`score_files`.

    Parameters
    ----------
    model : path
        Folder of a CLIP, SigLIP or OpenCLIP model with its ``tokenizer.json``.
    classes : path
        The classes and their names, as in :func:`match_files`.
    output : path
        Features to write: .parquet with ids and classes, .npz or .npy.
    templates : str or strings
        Texts that each name is put into, at ``{name}``; all are averaged.
    dtype : {"f32", "f16"}
        How numbers are stored.
    progress
        As in :func:`labelsieve.relevance`; progress is in classes.

    Returns
    -------
    dict
        What ``labelsieve embed-text --json`` prints: classes, texts, numbers per row.
    """
    options = {
        "model": model,
        "classes": _input("classes", classes),
        "output": _output("output", output),
        "templates": _names(templates),
        "dtype": as_choice("dtype", dtype, StoredAs),
    }
    return _run("embed-text", options, progress)


def score_files(
    clean: Optional[Path],
    pool: Path,
    output: Optional[Path] = None,
    *,
    class_text: Optional[Path] = None,
    candidates: Optional[Path] = None,
    decisions: Optional[Path] = None,
    base: Optional[Path] = None,
    method: Method = "auto",
    lam: Optional[float] = None,
    beta: float = 1.0,
    neighbours: Optional[int] = None,
    clean_labels: Optional[Path] = None,
    pool_labels: Optional[Path] = None,
    embedding_column: Optional[str] = None,
    label_column: Optional[str] = None,
    id_column: Optional[str] = None,
    allow_mixed: bool = False,
    seed: Any = 0,
    device: str = "auto",
    plan: Optional[Path] = None,
    bin: Optional[int] = None,
    shard: Optional[Shard] = None,
    neighbours_approximate: Optional[float] = None,
    memory: Union[str, int, None] = None,
    scratch: Optional[Path] = None,
    dry_run: bool = False,
    progress: Progress = None,
) -> dict[str, Any]:
    """Scores the relevance of every candidate to its class, from files to a file, as ``labelsieve score`` does.

    Finished classes are kept beside the output until all are done: the same call, or the same command, resumes a run
    that was killed.

    Parameters
    ----------
    clean, pool : paths
        Clean examples with their classes, and candidates: .npz, .npy, .parquet or a clip-retrieval folder. Clean
        examples that are candidates of their own class, by id or by identical features, count once, as clean. With
        ``class_text``, ``clean`` may be None.
    output : path
        File to write, .parquet or .csv: one row per example and class, for :func:`read_relevance`.
    class_text : path, optional
        Features of class names, as :func:`embed_text_files` writes them: each is one more clean example of its class.
    decisions : path, optional
        What people decided about candidates (.parquet, .csv or .tsv with ``id``, ``class`` and ``decision``): accepted
        ones count as clean examples, rejected ones as known negatives.
    candidates : path, optional
        Which rows of the pool are candidates of which class, as :func:`match_files` writes it; by default the pool's
        own classes say so.
    base : path, optional
        Base classes that ``mixture`` and ``auto`` compare candidates with, beside the other classes: the class weights of
        a network or classifier (.safetensors), or features with classes.
    method, lam, beta, neighbours
        As in :func:`labelsieve.relevance`.
    clean_labels, pool_labels : paths, optional
        Classes of the examples, for .npy: integers in .npy, or text with one class per line.
    embedding_column, label_column, id_column : str, optional
        Columns of Parquet files, where they are not the usual ones.
    allow_mixed : bool
        Accept features of different networks in one run.
    seed, device
        As in :func:`labelsieve.relevance`.
    plan, bin : path and int, optional
        Score only the classes of one bin, from 0, of a plan that :func:`plan_files` wrote. The output is a part for
        :func:`merge_files`; ``pool`` and ``candidates`` may hold the rows of the bin alone, in the same order.
    shard : str or (int, int), optional
        Score only shard I of N, as ``"I/N"`` or ``(I, N)``, from 0: the same without a plan.
    neighbours_approximate : float, optional
        Search the neighbours among more than 65,536 candidates approximately, on the CPU, to find about this share of them (0.95,
        say). What was found is in the result.
    memory : str or int, optional
        Memory that the run may take, in bytes or with a unit (``"4GiB"``), pages of scratch files included: a class that
        needs more is scored out of core, on the CPU, with the same result.
    scratch : path, optional
        Folder for scratch files, which vanish with the process; by default that of the output.
    dry_run : bool
        Only estimate memory and time; needs no output.
    progress : callable, tqdm bar or True, optional
        ``progress(done, total)`` in candidates, whenever a class is done. An exception in it stops the work.

    Returns
    -------
    dict
        What ``labelsieve score --json`` prints: classes, candidates, their mean relevance, what was left out; of a part,
        ``part`` says which it is and whether it was complete already; with ``dry_run``, the estimate.

    Examples
    --------
    >>> import labelsieve, numpy as np, os, tempfile
    >>> folder, data = tempfile.mkdtemp(), labelsieve.demo_data(n_classes=3)
    >>> for name, rows in {"clean": data.is_clean, "pool": ~data.is_clean}.items():
    ...     np.savez(os.path.join(folder, name), features_all=data.X[rows], labels_all=data.y[rows])
    >>> files = [os.path.join(folder, name) for name in ("clean.npz", "pool.npz", "relevance.parquet")]
    >>> labelsieve.score_files(*files)["n_classes"]
    3
    >>> labelsieve.score_files(*files[:2], dry_run=True)["n_candidates"] == int((~data.is_clean).sum())
    True
    """
    if (plan is None) != (bin is None):
        raise ValueError("plan and bin: expected both or neither")
    if plan is not None and shard is not None:
        raise ValueError("shard: expected none beside a plan")
    if dry_run and decisions is not None and plan is None and shard is None:
        raise ValueError("decisions: expected none with dry_run: they change neither memory nor time")
    if output is None and not dry_run:
        raise ValueError("output: expected a file to write; only a dry run needs none")
    if scratch is not None and memory is None:
        raise ValueError("scratch: expected none without memory, of which there is no limit then")
    check_base(method, base)
    if candidates is not None and pool_labels is not None:
        raise ValueError("pool_labels: expected none beside candidates, which say themselves which class each is of")
    options = {
        **_pools(clean, class_text, pool, clean_labels, pool_labels, allow_mixed),
        **_columns(embedding_column, label_column, id_column),
        "output": None if output is None else _output("output", output),
        "candidates": candidates,
        "decisions": decisions,
        "base": base,
        **_method(method, lam, neighbours, beta),
        "seed": as_seed(seed),
        "device": as_device(device),
        "plan": plan,
        "bin": None if bin is None else _count("bin", bin, least=0),
        "shard": None if shard is None else _shard("shard", shard),
        "neighbours_approximate": None
        if neighbours_approximate is None
        else _number("neighbours_approximate", neighbours_approximate),
        "memory": f"{memory}B" if isinstance(memory, int) else memory,
        "scratch": scratch,
        "dry_run": dry_run,
    }
    return _run("score", options, progress)


def plan_files(
    clean: Optional[Path],
    pool: Path,
    output: Path,
    bins: int,
    *,
    memory: Optional[str] = None,
    class_text: Optional[Path] = None,
    candidates: Optional[Path] = None,
    decisions: Optional[Path] = None,
    base: Optional[Path] = None,
    method: Method = "auto",
    lam: Optional[float] = None,
    beta: float = 1.0,
    neighbours: Optional[int] = None,
    clean_labels: Optional[Path] = None,
    pool_labels: Optional[Path] = None,
    embedding_column: Optional[str] = None,
    label_column: Optional[str] = None,
    id_column: Optional[str] = None,
    allow_mixed: bool = False,
    seed: Any = 0,
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Packs the classes of a run into bins, the longest first, as ``labelsieve plan`` does.

    Each bin is scored by :func:`score_files` with ``plan`` and ``bin``, anywhere and in any order, and :func:`merge_files`
    puts the parts together: the file is that of a single run, byte for byte.

    Parameters
    ----------
    clean, pool : paths
        As in :func:`score_files`, and so are all options that are not listed here.
    output : path
        File to write (.json).
    bins : int
        Number of bins.
    memory : str, optional
        Memory that a bin should keep within, such as ``"8GiB"``.
    device : str
        What bins will be scored on: times are for one core unless a GPU is named.

    Returns
    -------
    dict
        What ``labelsieve plan --json`` prints: the bins with their classes, candidates, seconds and memory, and the
        largest class.

    Examples
    --------
    >>> import labelsieve, numpy as np, os, tempfile
    >>> folder, data = tempfile.mkdtemp(), labelsieve.demo_data(n_classes=3)
    >>> for name, rows in {"clean": data.is_clean, "pool": ~data.is_clean}.items():
    ...     np.savez(os.path.join(folder, name), features_all=data.X[rows], labels_all=data.y[rows])
    >>> files = [os.path.join(folder, name) for name in ("clean.npz", "pool.npz")]
    >>> plan = os.path.join(folder, "plan.json")
    >>> len(labelsieve.plan_files(*files, plan, bins=2)["bins"])
    2
    >>> labelsieve.score_files(*files, os.path.join(folder, "part-1.parquet"), plan=plan, bin=1)["part"]["of"]
    2
    """
    check_base(method, base)
    if candidates is not None and pool_labels is not None:
        raise ValueError("pool_labels: expected none beside candidates, which say themselves which class each is of")
    options = {
        **_pools(clean, class_text, pool, clean_labels, pool_labels, allow_mixed),
        **_columns(embedding_column, label_column, id_column),
        "output": _output("output", output),
        "bins": _count("bins", bins),
        "memory": memory,
        "candidates": candidates,
        "decisions": decisions,
        "base": base,
        **_method(method, lam, neighbours, beta),
        "seed": as_seed(seed),
        "device": as_device(device),
    }
    return _run("plan", options, progress)


def merge_files(parts: Paths, output: Path, *, progress: Progress = None) -> dict[str, Any]:
    """Merges the parts of a run into the file that a single run would have written, as ``labelsieve merge`` does.

    Parameters
    ----------
    parts : path or paths
        What :func:`score_files` wrote for each bin or shard, or :func:`match_files` for each shard, in any order; or a
        folder of these. A part that is missing, given twice or of another run is an error.
    output : path
        File to write, .parquet or .csv.
    progress : callable, tqdm bar or True, optional
        ``progress(done, total)``, in classes or parts.

    Returns
    -------
    dict
        What ``labelsieve merge --json`` prints: which run it is, its parts and rows.

    Examples
    --------
    >>> import labelsieve, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> labelsieve.merge_files(folder, os.path.join(folder, "relevance.parquet"))
    Traceback (most recent call last):
        ...
    ValueError: no parts to merge
    hint: give the parts that `score_files` or `match_files` wrote, or their folder
    """
    options = {"parts": _paths(parts), "output": _output("output", output)}
    return _run("merge", options, progress)


def train_files(
    clean: Optional[Path],
    pool: Path,
    relevance: Path,
    output: Path,
    *,
    class_text: Optional[Path] = None,
    decisions: Optional[Path] = None,
    classifier: ClassifierName = "auto",
    base: Optional[Path] = None,
    batch_size: Optional[int] = None,
    epochs: Optional[int] = None,
    shrinkage: Union[float, str] = "auto",
    scale: Optional[float] = None,
    backbone: Optional[str] = None,
    clean_labels: Optional[Path] = None,
    pool_labels: Optional[Path] = None,
    embedding_column: Optional[str] = None,
    label_column: Optional[str] = None,
    id_column: Optional[str] = None,
    allow_mixed: bool = False,
    seed: Any = 0,
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Learns a classifier in which every candidate counts by its relevance, as ``labelsieve train`` does.

    Parameters
    ----------
    clean, pool, class_text : paths
        The examples, as in :func:`score_files`.
    relevance : path
        What :func:`score_files` wrote.
    decisions : path, optional
        Accepted candidates count as clean examples, rejected ones not at all; by default those that the relevance was
        made with.
    output : path
        File to write (.safetensors), for :func:`predict_files` and :func:`read_classifier`.
    classifier : {"auto", "prototype", "cosine", "discriminant"}
        The weighted mean of each class, a cosine classifier, Gaussian classes that share one covariance, or the one of them
        that does best on left-out clean examples.
    base : path, optional
        Classifier of base classes to extend.
    batch_size, epochs : int, optional
        For ``cosine``; by default 512 and 30.
    shrinkage : float or {"auto", "ledoit-wolf", "oas", "left-out"}
        For ``auto`` and ``discriminant``: how far the covariance is drawn towards a multiple of the unit matrix, above 0 and at
        most 1, or how that is chosen.
    scale : float, optional
        Scale of the logits; by default that of the base classes, or 10.
    backbone : str, optional
        Name of the backbone that made the features, kept in the file.
    clean_labels, pool_labels, embedding_column, label_column, id_column, allow_mixed
        As in :func:`score_files`.
    seed, device, progress
        As in :func:`labelsieve.relevance`; progress is in classes.

    Returns
    -------
    dict
        What ``labelsieve train --json`` prints: classes, columns, and accuracies on clean examples left out in turn.

    Examples
    --------
    >>> import labelsieve, numpy as np, os, tempfile
    >>> folder, data = tempfile.mkdtemp(), labelsieve.demo_data(n_classes=3)
    >>> for name, rows in {"clean": data.is_clean, "pool": ~data.is_clean}.items():
    ...     np.savez(os.path.join(folder, name), features_all=data.X[rows], labels_all=data.y[rows])
    >>> files = [os.path.join(folder, name) for name in ("clean.npz", "pool.npz", "relevance.parquet")]
    >>> _ = labelsieve.score_files(*files)
    >>> labelsieve.train_files(*files, os.path.join(folder, "model.safetensors"))["n_classes"]
    3
    """
    name = as_choice("classifier", classifier, ClassifierName)
    if name != "cosine" and (batch_size is not None or epochs is not None):
        raise ValueError(f"batch_size and epochs: expected with classifier=\"cosine\" alone, found classifier=\"{name}\"")
    if name not in ("auto", "discriminant") and shrinkage != "auto":
        raise ValueError(f"shrinkage: expected with classifier=\"auto\" or \"discriminant\", found classifier=\"{name}\"")
    options = {
        **_pools(clean, class_text, pool, clean_labels, pool_labels, allow_mixed),
        **_columns(embedding_column, label_column, id_column),
        "relevance": relevance,
        "decisions": decisions,
        "output": _output("output", output),
        "classifier": name,
        "base": base,
        "batch_size": None if batch_size is None else _count("batch_size", batch_size),
        "epochs": None if epochs is None else _count("epochs", epochs, least=0),
        "shrinkage": shrinkage if isinstance(shrinkage, str) else _number("shrinkage", shrinkage),
        "scale": None if scale is None else _number("scale", scale),
        "backbone": backbone,
        "seed": as_seed(seed),
        "device": as_device(device),
    }
    return _run("train", options, progress)


def finetune_files(
    network: Path,
    relevance: Path,
    images: Paths,
    output: Path,
    *,
    decisions: Optional[Path] = None,
    image_column: Optional[str] = None,
    image_id_column: Optional[str] = None,
    strict: bool = False,
    epochs: Optional[int] = None,
    batch_size: Optional[int] = None,
    rate: float = 0.01,
    final_rate: Optional[float] = None,
    base_images: Paths = (),
    base_where: Names = (),
    base_label_column: Optional[str] = None,
    softmax: SoftmaxMode = "joint",
    seed: Any = 0,
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Trains a whole network on images that count by their relevance, as ``labelsieve finetune`` does.

    Finished epochs are kept beside the output: the same call, or the same command, resumes a run that was killed.

    Parameters
    ----------
    network : path
        Network to fine-tune, as ``labelsieve pretrain`` writes it.
    relevance : path
        What :func:`score_files` wrote.
    decisions : path, optional
        As in :func:`train_files`.
    images : path or paths
        Images of all examples, clean ones and candidates, found by their ids.
    output : path
        File to write (.safetensors); curves of accuracy and loss go beside it (.svg).
    image_column, image_id_column : str, optional
        Columns of image bytes and ids, where they are not the usual ones.
    strict : bool
        Stop at the first image or file that cannot be read.
    epochs, batch_size : int, optional
        By default 10 and 256.
    rate, final_rate : float
        Learning rate, and that of the last epoch, reached along half a cosine; by default that of the first.
    base_images : path or paths
        Images of the network's base classes, which then keep learning too (eq. 8).
    base_where, base_label_column
        Which of them, and the column of their classes.
    softmax : {"joint", "separate"}
        Whether base and new classes compete with each other while they learn.
    seed, device, progress
        As in :func:`labelsieve.relevance`; progress is in images, then in epochs.

    Returns
    -------
    dict
        What ``labelsieve finetune --json`` prints: classes, examples, and where the curves are.
    """
    if not _paths(base_images) and (_names(base_where) or base_label_column is not None):
        raise ValueError("base_where and base_label_column: expected with base_images alone")
    options = {
        "network": network,
        "relevance": relevance,
        "decisions": decisions,
        "images": _paths(images),
        "output": _output("output", output),
        "image_column": image_column,
        "image_id_column": image_id_column,
        "strict": strict,
        "epochs": None if epochs is None else _count("epochs", epochs),
        "batch_size": None if batch_size is None else _count("batch_size", batch_size),
        "rate": _number("rate", rate),
        "final_rate": None if final_rate is None else _number("final_rate", final_rate),
        "base_images": _paths(base_images),
        "base_where": _names(base_where),
        "base_label_column": base_label_column,
        "softmax": as_choice("softmax", softmax, SoftmaxMode) if _paths(base_images) else None,
        "seed": as_seed(seed),
        "device": as_device(device),
    }
    return _run("finetune", options, progress)


def predict_files(
    model: Path,
    output: Path,
    *,
    features: Optional[Path] = None,
    images: Paths = (),
    top: int = 1,
    reject: Optional[float] = None,
    image_column: Optional[str] = None,
    where: Names = (),
    strict: bool = False,
    embedding_column: Optional[str] = None,
    id_column: Optional[str] = None,
    allow_mixed: bool = False,
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Names the classes of new examples, as ``labelsieve predict`` does.

    Parameters
    ----------
    model : path
        Classifier, as :func:`train_files` writes it; for images, a network with one, as :func:`finetune_files` does.
    output : path
        File to write, .parquet, .csv or .tsv.
    features, images : path, path or paths
        The examples: one of the two.
    top : int, default 1
        Guesses per example, best first.
    reject : float, optional
        Examples less typical than all but this share of the clean ones, e.g. 0.05, get no class.
    image_column, where, strict
        Of images, as in :func:`embed_files`.
    embedding_column, id_column, allow_mixed
        As in :func:`score_files`.
    device, progress
        As in :func:`labelsieve.relevance`; progress is in examples.

    Returns
    -------
    dict
        What ``labelsieve predict --json`` prints: numbers of examples and classes.

    Examples
    --------
    >>> import labelsieve, numpy as np, os, tempfile
    >>> folder, data = tempfile.mkdtemp(), labelsieve.demo_data(n_classes=3)
    >>> model = os.path.join(folder, "model.safetensors")
    >>> labelsieve.PrototypeClassifier().fit(data.X, data.y, is_clean=data.is_clean).save(model)
    >>> np.savez(os.path.join(folder, "test.npz"), features_all=data.X_test)
    >>> csv = os.path.join(folder, "predictions.csv")
    >>> labelsieve.predict_files(model, csv, features=os.path.join(folder, "test.npz"))
    {'n_examples': 120, 'n_classes': 3}
    """
    _one_of("features", features, images)
    _for_images(images, image_column, where, strict)
    options = {
        **_columns(embedding_column, None, id_column),
        "model": model,
        "output": _output("output", output),
        "features": features,
        "images": _paths(images),
        "image_column": image_column,
        "where": _names(where),
        "strict": strict,
        "top": _count("top", top),
        "reject": None if reject is None else _number("reject", reject),
        "allow_mixed": allow_mixed,
        "device": as_device(device),
    }
    return _run("predict", options, progress)


def evaluate_files(
    model: Optional[Path] = None,
    *,
    test: Optional[Path] = None,
    test_labels: Optional[Path] = None,
    images: Paths = (),
    baseline: Optional[Path] = None,
    relevance: Optional[Path] = None,
    truth: Optional[Path] = None,
    decisions: Optional[Path] = None,
    image_column: Optional[str] = None,
    where: Names = (),
    strict: bool = False,
    embedding_column: Optional[str] = None,
    label_column: Optional[str] = None,
    id_column: Optional[str] = None,
    allow_mixed: bool = False,
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Measures a classifier on labelled examples, or relevance against known truth, as ``labelsieve evaluate`` does.

    Parameters
    ----------
    model : path, optional
        Classifier, as :func:`train_files` writes it; for images, a network with one, as :func:`finetune_files` does.
    test, images : path, path or paths
        What the model is measured on: one of the two.
    test_labels : path, optional
        Classes of the test examples, for .npy.
    baseline : path, optional
        Another classifier to compare with; with relevance, grouped by number of candidates.
    relevance, truth : paths, optional
        Relevance, as :func:`score_files` writes it, and which candidates are really relevant.
    decisions : path, optional
        In place of ``truth``: accepted candidates are relevant, rejected ones are not. Candidates whose relevance was made
        with a decision are left out.
    image_column, where, strict
        Of images, as in :func:`embed_files`.
    embedding_column, label_column, id_column, allow_mixed
        As in :func:`score_files`.
    device, progress
        As in :func:`labelsieve.relevance`.

    Returns
    -------
    dict
        What ``labelsieve evaluate --json`` prints: ``top_1``, ``top_5``, ``classes`` and so on.

    Examples
    --------
    >>> import labelsieve, numpy as np, os, tempfile
    >>> folder, data = tempfile.mkdtemp(), labelsieve.demo_data(n_classes=3)
    >>> model, test = os.path.join(folder, "model.safetensors"), os.path.join(folder, "test.npz")
    >>> labelsieve.PrototypeClassifier().fit(data.X, data.y, is_clean=data.is_clean).save(model)
    >>> np.savez(test, features_all=data.X_test, labels_all=data.y_test)
    >>> labelsieve.evaluate_files(model, test=test)["n_test"]
    120
    """
    if model is not None:
        _one_of("test", test, images)
        _for_images(images, image_column, where, strict)
    elif relevance is None or (truth is None and decisions is None):
        raise ValueError("nothing to evaluate: expected model with test or images, or relevance with truth or decisions")
    if truth is not None and decisions is not None:
        raise ValueError("truth and decisions: expected one of the two, found both")
    options = {
        **_columns(embedding_column, label_column, id_column),
        "model": model,
        "test": test,
        "test_labels": test_labels,
        "images": _paths(images),
        "baseline": baseline,
        "relevance": relevance,
        "truth": truth,
        "decisions": decisions,
        "image_column": image_column,
        "where": _names(where),
        "strict": strict,
        "allow_mixed": allow_mixed,
        "device": as_device(device),
    }
    return _run("evaluate", options, progress)


def pretrain_files(
    images: Paths,
    output: Path,
    *,
    image_column: Optional[str] = None,
    id_column: Optional[str] = None,
    label_column: Optional[str] = None,
    where: Names = (),
    strict: bool = False,
    validate_where: Names = (),
    validation: Paths = (),
    architecture: str = "resnet10",
    stem: Optional[str] = None,
    size: Optional[int] = None,
    preset: str = "small",
    epochs: Optional[int] = None,
    batches: Optional[int] = None,
    batch_size: Optional[int] = None,
    rate: Optional[float] = None,
    least_crop: Optional[float] = None,
    f16: bool = False,
    seed: Any = 0,
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Trains a backbone on the images of base classes, as ``labelsieve pretrain`` does.

    Finished epochs are kept beside the output: the same call, or the same command, resumes a run that was killed.

    Parameters
    ----------
    images : path or paths
        Images of the base classes, as in :func:`embed_files`.
    output : path
        File to write (.safetensors); curves of accuracy and loss go beside it (.svg).
    image_column, id_column, label_column, where, strict
        As in :func:`embed_files`.
    validate_where, validation : optional
        Which images the accuracy is measured on after each epoch: rows with other values than ``where``, or other images.
    architecture : str, default "resnet10"
        ``"resnet10"``, ``"resnet18"``, ``"resnet50"``, ``"convnet128"`` or ``"efficientnet-lite0"``.
    stem : {"photo", "small"}, optional
        First layers of a residual network; by default small up to 96 pixels.
    size : int, optional
        Input size of the network in pixels; by default 224, or 84 for ``"convnet128"``.
    preset : str, default "small"
        Training recipe: ``"lowshot-imagenet"`` and ``"mini-imagenet"`` are the paper's.
    epochs, batches, batch_size, rate, least_crop : optional
        In place of the preset's: epochs, batches per epoch, images per batch, initial learning rate, and the smallest share of an
        image that a random crop keeps.
    f16 : bool
        Store weights in 16 bits.
    seed, device, progress
        As in :func:`labelsieve.relevance`; progress is in images, then in epochs.

    Returns
    -------
    dict
        What ``labelsieve pretrain --json`` prints: classes, accuracy, and where the curves are.
    """
    options = {
        "images": _paths(images),
        "output": _output("output", output),
        "image_column": image_column,
        "id_column": id_column,
        "label_column": label_column,
        "where": _names(where),
        "strict": strict,
        "validate_where": _names(validate_where),
        "validation": _paths(validation),
        "architecture": architecture,
        "stem": stem,
        "size": None if size is None else _count("size", size),
        "preset": preset,
        "epochs": None if epochs is None else _count("epochs", epochs),
        "batches": None if batches is None else _count("batches", batches),
        "batch_size": None if batch_size is None else _count("batch_size", batch_size),
        "rate": None if rate is None else _number("rate", rate),
        "least_crop": None if least_crop is None else _number("least_crop", least_crop),
        "f16": f16,
        "seed": as_seed(seed),
        "device": as_device(device),
    }
    return _run("pretrain", options, progress)


def run_files(
    clean: Path,
    pool: Path,
    output: Path,
    *,
    classes: Optional[Path] = None,
    text: Paths = (),
    rule: Rule = "plural",
    model: Optional[Path] = None,
    method: Method = "auto",
    base: Optional[Path] = None,
    decisions: Optional[Path] = None,
    seed: Any = 0,
    device: str = "auto",
    progress: Progress = None,
) -> dict[str, Any]:
    """Runs the whole pipeline in one folder, as ``labelsieve run`` does: embed, match, score, train and report.

    Steps that are done already are left as they are: the same call, or the same command, resumes a run that was killed.

    Parameters
    ----------
    clean : path
        Clean photos: a folder with a folder per class, or another source of images with classes.
    pool : path
        Photos of candidates, with captions in the folder or in ``text``, or in a folder per class.
    output : path
        Folder of the run: a new or empty one, or that of an earlier run.
    classes : path, optional
        Classes and their names, to find in captions; by default the folders of ``clean``.
    text : path or paths
        Captions of the pool, as in :func:`match_files`; by default those in its folder.
    rule : {"phrase", "plural", "any-word", "substring"}
        When a caption contains a name.
    model : str or path, optional
        Network for features, as in :func:`embed_files`.
    method, base, decisions
        As in :func:`score_files`.
    seed, device, progress
        As in :func:`labelsieve.relevance`; progress is that of each step.

    Returns
    -------
    dict
        What ``labelsieve run --json`` prints: the steps as calls, and the file that each wrote.
    """
    options = {
        "clean": clean,
        "pool": pool,
        "output": _output("output", output),
        "classes": classes,
        "text": [_input("text", path) for path in _paths(text)],
        "rule": as_choice("rule", rule, Rule),
        "model": model,
        "method": as_choice("method", method, Method),
        "base": base,
        "decisions": decisions,
        "seed": as_seed(seed),
        "device": as_device(device),
    }
    return _run("run", options, progress)


def classes_files(source: Path, output: Path, *, progress: Progress = None) -> dict[str, Any]:
    """Makes a class file from classes of another kind, as ``labelsieve classes`` does.

    Parameters
    ----------
    source : path
        A folder with a folder per class, .toml, .csv, or .txt with one WordNet synset per line.
    output : path
        Class file to write (.toml), ready to be edited.
    progress : callable, tqdm bar or True, optional
        Called as in the other functions; there is little to follow.

    Returns
    -------
    dict
        What ``labelsieve classes --json`` prints: the number of classes.

    Examples
    --------
    >>> import labelsieve, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> synsets, classes = os.path.join(folder, "synsets.txt"), os.path.join(folder, "classes.toml")
    >>> _ = open(synsets, "w").write("n03028079 church, church building\\n")
    >>> labelsieve.classes_files(synsets, classes)
    {'n_classes': 1}
    """
    options = {"source": _input("source", source), "output": _output("output", output)}
    return _run("classes", options, progress)


def import_decisions(
    files: Paths,
    output: Path = "decisions.parquet",
    *,
    source: Optional[str] = None,
    id_column: Optional[str] = None,
    class_column: Optional[str] = None,
    decision_column: Optional[str] = None,
    accept: Names = (),
    reject: Names = (),
    unsure: Names = (),
    progress: Progress = None,
) -> dict[str, Any]:
    """Adds decisions from other tools to a file of decisions, as ``labelsieve decisions import`` does.

    Parameters
    ----------
    files : path or paths
        Exports: JSON of Label Studio, a folder or JSON of FiftyOne, or a table (.csv, .tsv, .parquet).
    output : path, default "decisions.parquet"
        File of decisions (.parquet, .csv or .tsv); decisions are added after those it has.
    source : str, optional
        The tool that wrote the files; by default it is guessed from them.
    id_column, class_column, decision_column : str, optional
        Columns, fields or controls that hold ids, classes and decisions, where they are not the usual ones.
    accept, reject, unsure : str or strings
        Further words for these decisions.
    progress : callable, tqdm bar or True, optional
        Called as in the other functions.

    Returns
    -------
    dict
        What ``labelsieve decisions import --json`` prints: decisions that are new, known, and of each kind.

    Examples
    --------
    >>> import labelsieve, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> table, decisions = os.path.join(folder, "table.csv"), os.path.join(folder, "decisions.csv")
    >>> _ = open(table, "w").write("id,class,decision\\na,owl,yes\\nb,owl,reject\\n")
    >>> labelsieve.import_decisions(table, decisions, accept="yes")["n_accept"]
    1
    """
    options = {
        "files": [_input("files", path) for path in _paths(files)],
        "output": _output("output", output),
        "from": source,
        "id_column": id_column,
        "class_column": class_column,
        "decision_column": decision_column,
        "accept": _names(accept),
        "reject": _names(reject),
        "unsure": _names(unsure),
    }
    return _run("decisions import", options, progress)


def report_files(
    source: Path,
    output: Optional[Path] = None,
    *,
    truth: Optional[Path] = None,
    decisions: Optional[Path] = None,
    images: Paths = (),
    image_column: Optional[str] = None,
    id_column: Optional[str] = None,
    text: Paths = (),
    text_columns: Names = (),
    figures: Optional[Path] = None,
    title: Optional[str] = None,
    per_class: Union[int, str] = 60,
    progress: Progress = None,
) -> dict[str, Any]:
    """Writes an HTML report of a run or a relevance file, as ``labelsieve report`` does. :func:`labelsieve.report` also takes
    tables.

    Parameters
    ----------
    source : path
        A run directory or a relevance file.
    output : path, optional
        HTML file to write, self-contained; None is for ``figures`` alone.
    truth : path, optional
        A Parquet or CSV file of ``id``, ``class`` and ``relevant``, for the figures that need it; by default the run's own.
    decisions : path, optional
        A .parquet, .csv or .tsv file of decisions to mark; by default those in the relevance file.
    images : path or paths
        Pictures of clean examples and candidates: folders, .parquet files with image bytes, .tar files, image files.
    image_column, id_column : str, optional
        Columns of images, and of ids of images and texts, where they are not the usual ones.
    text : path or paths
        Captions, as in :func:`match_files`; by default those beside the images.
    text_columns : str or list of str
        Columns of captions, where they are not the usual ones.
    figures : path, optional
        Folder to write the figures to (.svg).
    title : str, optional
        Heading of the page; by default the run's own.
    per_class : int or "all", default 60
        Candidates shown with a picture per class: half from the top of the ranking, a quarter each from the middle and the bottom.
    progress : callable, tqdm bar or True, optional
        Called as in :func:`labelsieve.relevance`; in pictures.

    Returns
    -------
    dict
        What ``labelsieve report --json`` prints: the numbers of classes, examples, pictures, tables and figures.

    Examples
    --------
    >>> import labelsieve, os, tempfile
    >>> data = labelsieve.demo_data(n_classes=3)
    >>> table = labelsieve.Cleaner().fit(data.X, data.y, is_clean=data.is_clean).to_table()
    >>> folder = tempfile.mkdtemp()
    >>> relevance, page = os.path.join(folder, "relevance.parquet"), os.path.join(folder, "report.html")
    >>> labelsieve.write_relevance(relevance, table)
    >>> labelsieve.report_files(relevance, page)["n_classes"]
    3
    """
    if output is None and figures is None:
        raise ValueError("output: expected a file, unless figures is given")
    if not _paths(images) and (image_column is not None or id_column is not None or _paths(text) or _names(text_columns)):
        raise ValueError("image_column, id_column, text and text_columns: expected with images alone")
    if output is None and (title is not None or _paths(images) or decisions is not None or per_class != 60):
        raise ValueError("title, images, decisions and per_class: expected with output alone")
    options = {
        "source": source,
        "output": None if output is None else _output("output", output),
        "truth": truth,
        "decisions": decisions,
        "images": _paths(images),
        "image_column": image_column,
        "id_column": id_column,
        "text": [_input("text", path) for path in _paths(text)],
        "text_columns": _names(text_columns),
        "figures": figures,
        "title": title,
        "per_class": "all" if per_class == "all" else _count("per_class", per_class),
    }
    return _run("report", options, progress)


def review_files(
    source: Path,
    output: Optional[Path] = None,
    *,
    images: Paths = (),
    image_column: Optional[str] = None,
    text: Paths = (),
    text_columns: Names = (),
    clean: Optional[Path] = None,
    pool: Optional[Path] = None,
    class_text: Optional[Path] = None,
    candidates: Optional[Path] = None,
    base: Optional[Path] = None,
    clean_labels: Optional[Path] = None,
    pool_labels: Optional[Path] = None,
    allow_mixed: bool = False,
    embedding_column: Optional[str] = None,
    label_column: Optional[str] = None,
    id_column: Optional[str] = None,
    by: Optional[str] = None,
    title: Optional[str] = None,
    port: int = 0,
    host: str = "127.0.0.1",
    no_open: bool = False,
    device: str = "auto",
    opened: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Shows candidates in a browser, where a person decides about them, as ``labelsieve review`` does.

    Returns when it is interrupted: by Ctrl-C, or by the stop button of a notebook. Every decision is saved at once.

    Parameters
    ----------
    source : path
        A relevance file, or the folder of :func:`run_files`, in which everything else is found.
    output : path, optional
        File of the decisions (.parquet, .csv or .tsv), continued if it exists; in a folder by default its ``decisions.parquet``.
    images, image_column, text, text_columns
        Pictures and captions, as in :func:`report_files`.
    clean, pool, class_text, candidates, base, clean_labels, pool_labels, allow_mixed
        As in :func:`score_files`; without features, relevance stays as it is.
    embedding_column, label_column, id_column : str, optional
        Columns of tables, where they are not the usual ones; ``id_column`` also that of images and captions.
    by : str, optional
        Who decides, noted with every decision; by default the name of the account.
    title : str, optional
        Heading of the page.
    port : int, default 0
        Port of the server; 0 is any free one.
    host : str, default "127.0.0.1"
        Address to listen on; any but a loopback address lets other machines in that know the token.
    no_open : bool
        Do not open a browser.
    device : str
        As in :func:`labelsieve.relevance`.
    opened : callable, default print
        Called with the address of the page when it can be opened.

    Returns
    -------
    dict
        ``n_decisions``, the candidates with a decision; ``output``, their file; ``relevance``, the file that was reviewed;
        ``can_score``, whether relevance followed the decisions; and ``command``, the call that scores all classes with them, or
        None.
    """
    if pool is None and (allow_mixed or embedding_column is not None or label_column is not None):
        raise ValueError("allow_mixed, embedding_column and label_column: expected with clean and pool alone")
    options = {
        **_columns(embedding_column, label_column, id_column),
        "source": _input("source", source),
        "output": None if output is None else _output("output", output),
        "images": _paths(images),
        "image_column": image_column,
        "text": [_input("text", path) for path in _paths(text)],
        "text_columns": _names(text_columns),
        "clean": clean,
        "pool": pool,
        "class_text": class_text,
        "candidates": candidates,
        "base": base,
        "clean_labels": clean_labels,
        "pool_labels": pool_labels,
        "allow_mixed": allow_mixed,
        "by": by,
        "title": title,
        "port": port,
        "host": host,
        "no_open": no_open,
        "device": as_device(device),
    }
    return _review(options, opened)


def _review(options: dict[str, Any], opened: Callable[[str], object]) -> dict[str, Any]:
    """A review; its warnings are attributed as those of :func:`_run`."""
    closed: dict[str, Any] = json.loads(_labelsieve.run_review(options, opened))
    return closed


def _run(command: str, options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Runs the job of a command. Its warnings are attributed to the caller of the public function, two frames up."""
    stretches = None if progress is None or progress is False else Stretches(progress)
    summary: dict[str, Any] = json.loads(_labelsieve.run_job(command, options, stretches))
    return summary


def _method(method: Method, lam: Optional[float], neighbours: Optional[int], beta: float) -> dict[str, Any]:
    """A method with those settings that it has."""
    name = as_choice("method", method, Method)
    has_lambda, has_neighbours = name in ("auto", "gcn", "mlp"), name in ("auto", "gcn", "label-propagation", "mixture")
    return {
        "method": name,
        "lambda": _number("lam", lam) if has_lambda and lam is not None else None,
        "neighbours": _count("neighbours", neighbours) if has_neighbours and neighbours is not None else None,
        "beta": _number("beta", beta) if name == "beta" else None,
    }


def _pools(
    clean: Optional[Path],
    class_text: Optional[Path],
    pool: Path,
    clean_labels: Optional[Path],
    pool_labels: Optional[Path],
    allow_mixed: bool,
) -> dict[str, Any]:
    if clean is None and class_text is None:
        raise ValueError("clean: expected a file, unless class_text is given")
    if clean is None and clean_labels is not None:
        raise ValueError("clean_labels: expected none without clean")
    return {
        "clean": clean,
        "class_text": class_text,
        "pool": pool,
        "clean_labels": clean_labels,
        "pool_labels": pool_labels,
        "allow_mixed": allow_mixed,
    }


def _columns(embedding: Optional[str], label: Optional[str], id: Optional[str]) -> dict[str, Any]:
    return {"embedding_column": embedding, "label_column": label, "id_column": id}


def _input(name: str, path: Path) -> Path:
    """Refuses stdin: Ctrl-C could not interrupt a blocking read."""
    if os.fspath(path) == "-":
        raise ValueError(f"{name}: expected a file, found `-`\nhint: only the command line reads stdin")
    return path


def _numbers(values: Sequence[float]) -> str:
    """Three numbers as the command line has them."""
    return ",".join(repr(value) for value in values)


def _channels(name: str, values: Union[float, Sequence[float]]) -> list[float]:
    """One number for all channels, or three."""
    three = [values] * 3 if isinstance(values, (int, float)) else list(values)
    if len(three) != 3:
        raise ValueError(f"{name}: expected one number or three, found {len(three)}")
    return [_number(name, value) for value in three]


def _deviations(name: str, values: Union[float, Sequence[float]]) -> list[float]:
    three = _channels(name, values)
    if min(three) <= 0:
        raise ValueError(f"{name}: expected positive numbers, found {min(three)}")
    return three


def _output(name: str, path: Path) -> Path:
    if os.fspath(path) == "-":
        raise ValueError(f"{name}: expected a file, found `-`\nhint: only the command line writes to stdout")
    return path


def _shard(name: str, shard: Shard) -> str:
    """``"I/N"`` from that or ``(I, N)``, from 0."""
    words = shard.split("/") if isinstance(shard, str) else list(shard)
    try:
        index, of = (int(word) for word in words)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected \"I/N\" or (I, N), e.g. \"0/8\", found {shard!r}") from None
    if not 0 <= index < of:
        raise ValueError(f"{name}: expected a shard from 0 to below {of}, found {index}")
    return f"{index}/{of}"


def _one_of(name: str, table: Optional[Path], images: Paths) -> None:
    if (table is not None) == bool(_paths(images)):
        found = "none" if table is None else "both"
        raise ValueError(f"{name} and images: expected one of the two, found {found}")


def _for_images(images: Paths, image_column: Optional[str], where: Names, strict: bool) -> None:
    if not _paths(images) and (image_column is not None or _names(where) or strict):
        raise ValueError("image_column, where and strict: expected with images alone")


def _size(size: Any) -> str:
    """``HxW`` from one number or two."""
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(sides) != 2:
        raise ValueError(f"image_size: expected a height and a width, found {size!r}")
    height, width = (_at_most("image_size", _count("image_size", side), 4096) for side in sides)
    return f"{height}x{width}"


def _at_most(name: str, value: int, most: int) -> int:
    if value > most:
        raise ValueError(f"{name}: expected at most {most}, found {value}")
    return value


def _share(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name}: expected a number in [0, 1], found {number}")
    return number


def _paths(paths: Paths) -> list[Path]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def _names(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
