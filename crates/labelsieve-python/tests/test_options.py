"""Every option of a command is an argument of its function and an option on a cluster, or its absence has a reason here."""

import importlib
import inspect
import json
import re

import pytest

import labelsieve
from labelsieve import _labelsieve
from labelsieve.ray._options import _HELP, _READ, CLUSTER, COMMANDS

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
    "report": labelsieve.report_files,
    "review": labelsieve.review_files,
    "run": labelsieve.run_files,
    "score": labelsieve.score_files,
    "train": labelsieve.train_files,
}

#: Commands without a function, with the reason.
NO_FUNCTION = {
    "completions": "for a shell",
    "decisions show": "read_decisions returns the table itself",
    "demo": "demo_data returns a sample; the demo shows the commands",
    "man": "for a shell",
}

#: Commands of one machine that a cluster does not have, with the reason.
NOT_ON_A_CLUSTER = {
    **NO_FUNCTION,
    "classes": "one small file",
    "decisions import": "small files",
    "embed-text": "a few names",
    "evaluate": "takes seconds",
    "finetune": "one network on one device",
    "merge": "the cluster merges its parts itself",
    "plan": "the cluster packs the classes itself",
    "predict": "takes seconds",
    "pretrain": "one network on one device",
    "report": "one page",
    "review": "a person at one machine",
    "run": "its steps are commands of the cluster",
}

#: Options that a function lacks.
ONLY_COMMAND_LINE = {
    "review": {"demo": "the demo is a command alone"},
}

#: Arguments that are not options, by command.
ONLY_PYTHON = {
    "review": {"opened": "a function has no stdout of its own for the address"},
    "embed": {"on_empty": "a cluster embeds many sources, of which some may be empty"},
}

#: Defaults of Python that the command line does not state as constants.
OWN_DEFAULTS = {
    ("embed", "model"): "None is the same network, so that the function need not spell its name",
    ("predict", "output"): "a function does not write to stdout",
    ("embed-text", "templates"): "a str stands for a list of one",
}


def options_of(command):
    return {one["argument"]: one for one in json.loads(_labelsieve.describe_options(command))}


def test_every_command_is_a_function_or_has_a_reason():
    assert sorted(_labelsieve.commands()) == sorted([*FUNCTIONS, *NO_FUNCTION])


def test_every_command_is_on_a_cluster_or_has_a_reason():
    assert sorted(_labelsieve.commands()) == sorted([*COMMANDS, *NOT_ON_A_CLUSTER])


@pytest.mark.parametrize("command", sorted(FUNCTIONS))
def test_a_function_takes_the_options_of_its_command(command):
    options, taken = options_of(command), inspect.signature(FUNCTIONS[command]).parameters
    assert sorted(options.keys() - taken.keys()) == sorted(ONLY_COMMAND_LINE.get(command, {})), "options that the function lacks"
    own = ONLY_PYTHON.get(command, {}).keys() | {"progress"}
    assert sorted(taken.keys() - options.keys() - own) == [], "arguments that the command lacks"


@pytest.mark.parametrize("command", sorted(FUNCTIONS))
def test_a_function_describes_its_arguments(command):
    text = inspect.getdoc(FUNCTIONS[command])
    described = set()
    for line in text.split("Parameters\n")[1].split("Returns\n")[0].splitlines():
        if line and not line.startswith(" "):
            described.update(re.split(r",\s*", line.split(" : ")[0].strip()))
    for name in inspect.signature(FUNCTIONS[command]).parameters:
        shared = "all options that are not listed here" in text  # as those of another function
        assert name in described or shared, name


@pytest.mark.parametrize("command", sorted(FUNCTIONS))
def test_a_function_has_the_defaults_of_its_command(command):
    taken = inspect.signature(FUNCTIONS[command]).parameters
    for name, option in options_of(command).items():
        if name in ONLY_COMMAND_LINE.get(command, {}):
            continue
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


#: Arguments that a call needs besides the arguments that have no default.
MORE = {
    "evaluate": {"model": "m.safetensors", "test": "t.npz"},
    "plan": {"bins": 2},
    "predict": {"features": "f.npz"},
    "report": {"output": "r.html"},
    "score": {"output": "r.parquet"},
}

#: Options that a function passes, and its command does not have.
ONLY_PASSED = {
    "embed": {"may_be_empty"},
    "predict": {"label_column"},  # hidden there: it names a column that nothing reads
}


@pytest.mark.parametrize("command", sorted(FUNCTIONS))
def test_a_function_passes_all_its_arguments(command, monkeypatch):
    passed = {}

    def job(name, options, progress):
        assert name == command
        passed.update(options)
        return json.dumps({"n_skipped": 0})

    def review(options, opened):
        passed.update(options)
        return "{}"

    monkeypatch.setattr(_labelsieve, "run_job", job)
    monkeypatch.setattr(_labelsieve, "run_review", review)
    taken = inspect.signature(FUNCTIONS[command]).parameters.values()
    needed = {one.name: f"{one.name}.x" for one in taken if one.default is inspect.Parameter.empty}
    FUNCTIONS[command](**{**needed, **MORE.get(command, {})})
    options = json.loads(_labelsieve.describe_options(command))
    expected = {one["name"] for one in options} - ONLY_COMMAND_LINE.get(command, {}).keys()
    assert sorted(passed.keys() ^ expected) == sorted(ONLY_PASSED.get(command, set()))


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_function_of_a_cluster_takes_its_own_options_and_describes_its_arguments(command):
    pytest.importorskip("pyarrow")
    pytest.importorskip("ray")
    function = getattr(importlib.import_module("labelsieve.ray"), command)
    taken = inspect.signature(function).parameters
    own = {option.name for option in COMMANDS[command].own}
    assert own | set(COMMANDS[command].needed) <= taken.keys()
    assert {"options", "settings"} <= taken.keys()
    text = inspect.getdoc(function)
    assert all(re.search(rf"^(?! )[\w, *]*\b{name}\b", text, re.MULTILINE) for name in taken)


def test_no_exception_of_the_cluster_is_stale():
    known = {name for command in COMMANDS for name in options_of(command)}
    assert set(_HELP) <= known and set(_READ) <= known
    assert all(option.help for command in COMMANDS.values() for option in (*command.options, *command.own, *CLUSTER))


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(ValueError, match="nois: unknown option"):
        _labelsieve.run_job("merge", {"nois": 1}, None)
    with pytest.raises(ValueError, match="no job is called `clean`"):
        _labelsieve.run_job("clean", {}, None)
