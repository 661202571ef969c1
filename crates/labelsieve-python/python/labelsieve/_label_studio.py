"""Tasks for Label Studio, and the answers from there."""

from __future__ import annotations

import json
import warnings
from typing import Any, Optional
from xml.sax.saxutils import quoteattr

from ._files import Path, texts
from ._handoffs import Place, placed, scored_rows, write_json
from ._labelsieve import __version__
from ._table import Table

#: The name of the control in the interface, by which results refer to it.
CONTROL = "class"
NONE_OF_THESE = "None of these"


def to_label_studio(
    table: Any, path: Path, image: Place = "/data/local-files/?d={id}", none_of_these: str = NONE_OF_THESE
) -> str:
    """Writes tasks that Label Studio imports, each with its class and relevance as a prediction.

    Sort by prediction score in the data manager to see doubtful ones first. :func:`read_label_studio` reads the
    answers.

    Parameters
    ----------
    table : Table, data frame, Arrow table or mapping
        ``id``, ``class`` and ``relevance``; e.g. ``read_relevance(…)`` or ``Cleaner.to_table(ids)``.
    path : path
        The JSON file to write.
    image : str or callable
        The address of an example's image, from its id. The default is Label Studio's local storage.
    none_of_these : str, default "None of these"
        The choice that rejects an example. No class may have this name.

    Returns
    -------
    str
        The labelling interface (XML) for the project's settings: all classes, and the choice that rejects them.

    Examples
    --------
    >>> import labelsieve, tempfile, os, json
    >>> path = os.path.join(tempfile.mkdtemp(), "tasks.json")
    >>> table = {"id": ["a.jpg"], "class": ["owl"], "relevance": [0.25]}
    >>> interface = labelsieve.to_label_studio(table, path, image="https://example.org/{id}")
    >>> with open(path) as file:
    ...     task = json.load(file)[0]
    >>> task["data"]["image"], task["predictions"][0]["score"]
    ('https://example.org/a.jpg', 0.25)
    >>> '<Choice value="None of these"/>' in interface
    True
    """
    ids, classes, relevance = scored_rows(table)
    if not none_of_these or none_of_these in classes:
        found = "a class" if none_of_these else "no text"
        raise ValueError(f"none_of_these: expected a text that is not a class, found {found}: `{none_of_these}`")
    place = placed(image)
    tasks = []
    for name, label, score in zip(ids, classes, relevance):
        choice = {"from_name": CONTROL, "to_name": "image", "type": "choices", "value": {"choices": [label]}}
        prediction = {"model_version": f"labelsieve {__version__}", "score": score, "result": [choice]}
        tasks.append({"data": {"image": place(name), "id": name, "class": label}, "predictions": [prediction]})
    write_json(path, tasks)
    offered = [*sorted(set(classes)), none_of_these]
    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in offered)
    return (
        '<View>\n  <Image name="image" value="$image"/>\n'
        f'  <Choices name="{CONTROL}" toName="image" choice="single">\n{choices}\n  </Choices>\n</View>\n'
    )


def read_label_studio(path: Path, none_of_these: str = NONE_OF_THESE) -> Table:
    """Reads the answers to the tasks of :func:`to_label_studio`, from Label Studio's export as JSON.

    Tasks without an answer and answers that were cancelled are left out. Tasks on which people disagree are left out
    with a warning.

    Parameters
    ----------
    path : path
        The exported file (*JSON*, not *JSON-MIN*).
    none_of_these : str, default "None of these"
        As it was given to :func:`to_label_studio`.

    Returns
    -------
    Table
        ``id``; ``class``, of which the example was a candidate; ``chosen``, the class that was chosen, None for "none of
        these"; and ``relevant``, whether both are the same. Relevant examples can be added to the clean ones.

    Examples
    --------
    >>> import labelsieve, tempfile, os, json
    >>> path = os.path.join(tempfile.mkdtemp(), "export.json")
    >>> answer = {"from_name": "class", "type": "choices", "value": {"choices": ["None of these"]}}
    >>> task = {"data": {"id": "a.jpg", "class": "owl"}, "annotations": [{"result": [answer]}]}
    >>> with open(path, "w") as file:
    ...     json.dump([task], file)
    >>> table = labelsieve.read_label_studio(path)
    >>> table["id"][0], table["chosen"][0], bool(table["relevant"][0])
    ('a.jpg', None, False)
    """
    with open(path, encoding="utf-8") as file:
        try:
            tasks = json.load(file)
        except ValueError as error:
            raise ValueError(f"`{path}`: expected JSON: {error}") from None
    ids, classes, chosen, disputed = [], [], [], 0
    for position, task in enumerate(tasks if isinstance(tasks, list) else [tasks]):
        name, label, answers = _answers(task, f"`{path}`, task {position}")
        disputed += len(answers) > 1
        if len(answers) == 1:
            (answer,) = answers
            ids.append(name)
            classes.append(label)
            chosen.append(None if answer == none_of_these else answer)
    if disputed:
        warnings.warn(f"`{path}`: left out {disputed} tasks on which people disagree", UserWarning, stacklevel=2)
    relevant = [answer == label for answer, label in zip(chosen, classes)]
    return Table({"id": texts(ids), "class": texts(classes), "chosen": texts(chosen), "relevant": relevant})


def _answers(task: Any, place: str) -> tuple[str, str, set[str]]:
    """Id and class of a task, and the different answers to it."""
    try:
        data, annotations = task["data"], task["annotations"]
        name, label = str(data["id"]), str(data["class"])
    except (KeyError, TypeError):
        raise ValueError(
            f"{place}: expected `annotations` and `data` with `id` and `class`\nhint: export as JSON, not JSON-MIN, from a "
            "project with the tasks of to_label_studio"
        ) from None
    answers = (_answer(annotation, place) for annotation in annotations if not annotation.get("was_cancelled"))
    return name, label, {answer for answer in answers if answer is not None}


def _answer(annotation: Any, place: str) -> Optional[str]:
    """The choice of one person, if there is one."""
    choices = [
        choice
        for result in annotation.get("result", [])
        if result.get("from_name") == CONTROL
        for choice in result.get("value", {}).get("choices", [])
    ]
    if len(choices) > 1:
        raise ValueError(f"{place}: expected one choice, found {', '.join(map(str, choices))}")
    return str(choices[0]) if choices else None
