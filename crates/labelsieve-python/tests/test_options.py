"""Every option of a command is an argument of its function and an option on a cluster, or its absence has a reason here."""

import inspect
import json
import re

import pytest

import labelsieve
from labelsieve import _labelsieve
from labelsieve.ray._options import COMMANDS, RENAMED

FUNCTIONS = {
    "classes": labelsieve.classes_files,
    "decisions import": labelsieve.import_decisions,
    "embed": labelsieve.embed_files,
    "embed-text": labelsieve.embed_text_files,
    "evaluate": labelsieve.evaluate_files,
    "finetune": labelsieve.finetune_files,
    "match": labelsieve.match_files,
    "merge": labelsieve.merge_files,
    "plan": labelsieve.plan_files,
    "predict": labelsieve.predict_files,
    "pretrain": labelsieve.pretrain_files,
    "run": labelsieve.run_files,
    "score": labelsieve.score_files,
    "train": labelsieve.train_files,
}

#: Arguments that are no options, by command.
ONLY_PYTHON = {
    "embed": {"on_empty": "a cluster embeds many sources, of which some may be empty"},
}

#: Defaults of Python that the command line does not state as constants.
OWN_DEFAULTS = {
    ("embed", "model"): "None is the same network, so that the function need not spell its name",
    ("predict", "output"): "a function does not write to stdout",
    ("embed-text", "templates"): "a str stands for a list of one",
}


def options_of(command):
    return {RENAMED.get(one["name"], one["name"]): one for one in json.loads(_labelsieve.describe_options(command))}


@pytest.mark.parametrize("command", sorted(FUNCTIONS))
def test_a_function_takes_the_options_of_its_command(command):
    options, taken = options_of(command), inspect.signature(FUNCTIONS[command]).parameters
    assert sorted(options.keys() - taken.keys()) == [], "options that the function lacks"
    own = ONLY_PYTHON.get(command, {}).keys() | {"progress"}
    assert sorted(taken.keys() - options.keys() - own) == [], "arguments that the command lacks"


@pytest.mark.parametrize("command", sorted(FUNCTIONS))
def test_a_function_describes_its_arguments(command):
    text = inspect.getdoc(FUNCTIONS[command])
    described = set()
    for line in text.split("Parameters\n")[1].split("Returns\n")[0].splitlines():
        if line and not line.startswith(" "):
            described.update(re.split(r",\s*", line.split(" : ")[0].strip()))
    for name in options_of(command):
        shared = "all options that are not listed here" in text  # as those of another function
        assert name in described or shared, name


@pytest.mark.parametrize("command", sorted(FUNCTIONS))
def test_a_function_has_the_defaults_of_its_command(command):
    taken = inspect.signature(FUNCTIONS[command]).parameters
    for name, option in options_of(command).items():
        default = taken[name].default
        if option["default"] is None or (command, name) in OWN_DEFAULTS:
            continue
        assert default is not inspect.Parameter.empty, name
        is_number = option["kind"] in ("integer", "number")
        same = float(default) == float(option["default"]) if is_number else str(default) == option["default"]
        assert same, (name, default, option["default"])


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_cluster_has_the_options_of_a_command(command):
    on_ray = COMMANDS[command]
    has = {option.name for option in on_ray.options}
    assert sorted(options_of(command).keys() - has) == sorted(on_ray.without), "every absence has a reason"
    assert set(on_ray.needed) <= has


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(ValueError, match="nois: there is no such option"):
        _labelsieve.run_job("merge", {"nois": 1}, None)
    with pytest.raises(ValueError, match="no job is called `clean`"):
        _labelsieve.run_job("clean", {}, None)
