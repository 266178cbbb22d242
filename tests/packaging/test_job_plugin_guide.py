"""The page on plugins of jobs: its table is complete, and its example works as it stands there."""

import re
import tomllib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec
import pytest
import yaml

from tests.packaging.pages import DOCS
from volcano_py.api.batch import Job
from volcano_py.controllers.job.plugins.contract import ENTRY_POINTS, PluginProblem
from volcano_py.controllers.job.plugins.registry import BUILT_IN, build_plugins

PAGE = DOCS / "job-plugins.md"
TEXT = PAGE.read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
(JOB,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
(PROJECT,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
TABLE = TEXT.partition("`tensorflow`, `pytorch`, `mpi` and `ray` need")[0]
ROWS = {cells[0]: cells for cells in (line.strip("| ").split(" | ") for line in TABLE.splitlines() if "| `" in line)}


def defaults(name: str) -> Mapping[str, Any]:
    """Return the default of each argument of a plugin."""
    kinds = [
        kind
        for key, kind in vars(import_module(BUILT_IN[name].__module__)).items()
        if key == f"{BUILT_IN[name].__name__}Arguments"  # type: ignore[attr-defined]
    ]
    return {field.encode_name: field.default for kind in kinds for field in msgspec.structs.fields(kind)}


def a_job_of_size(replicas: int, *arguments: str) -> Job:
    template = {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}
    tasks = [{"name": "worker", "replicas": replicas, "template": template}]
    return msgspec.convert(
        {"metadata": {"name": "train"}, "spec": {"tasks": tasks, "plugins": {"size": [*arguments]}}}, Job
    )


@pytest.fixture
def factories() -> dict[str, Any]:
    """The plugin of the page, under the name in its project file."""
    module: dict[str, Any] = {}
    exec(compile(EXAMPLE, "size.py", "exec"), module)
    ((name, target),) = tomllib.loads(PROJECT)["project"]["entry-points"][ENTRY_POINTS].items()
    return {**BUILT_IN, name: module[target.partition(":")[2]]}


def test_the_table_has_the_plugins_in_the_order_in_which_they_act():
    assert [name.strip("`") for name in ROWS] == list(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_argument_stands_in_the_table_with_its_default(name: str):
    cell = ROWS[f"`{name}`"][1]
    wrong = []
    for argument, default in defaults(name).items():
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        if not re.search(rf"`--{argument}`" + (rf" \(`{re.escape(shown)}`" if shown else ""), cell):
            wrong.append(argument)

    assert wrong == []
    assert set(re.findall(r"`--(\w[\w-]*)`", cell)) == set(defaults(name))


def test_every_object_has_its_line():
    job = {"metadata": {"name": "train"}, "spec": {"tasks": [{"name": "head"}], "plugins": dict.fromkeys(BUILT_IN)}}
    plugins = build_plugins(msgspec.convert(job, Job))

    said = " ".join(cells[1] for cells in rows_of_objects())

    for one in plugins.objects(msgspec.convert(job, Job)):
        assert f"{one.body['kind']} `{one.body['metadata']['name']}`" in said


def rows_of_objects() -> list[list[str]]:
    lines = TEXT.partition("| plugin | objects")[2].partition("\n\n")[0].splitlines()[2:]
    return [line.strip("| ").split(" | ") for line in lines]


def test_the_job_names_plugins_and_arguments_that_exist():
    job = msgspec.convert(yaml.safe_load(JOB), Job)
    tasks = [{"name": "master", "replicas": 1}, {"name": "worker", "replicas": 1}]
    job = msgspec.convert({"metadata": {"name": "train"}, "spec": {"plugins": job.spec.plugins, "tasks": tasks}}, Job)

    plugins = build_plugins(job)

    assert (plugins.problems, plugins.warnings) == ((), ())


def test_the_example_adds_its_variable_and_leaves_the_template_alone(factories: dict[str, Any]):
    job = a_job_of_size(3, "--what")
    task = job.spec.tasks[0]
    plugins = build_plugins(job, factories)
    pod = {"metadata": {"name": "train-worker-0"}, **task.template}

    plugins.customize(pod, job, task, 0)

    assert [one["name"] for one in pod["spec"]["containers"][0]["env"]] == ["A", "TASK_SIZE"]
    assert task.template["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert plugins.warnings == ('plugin "size": unknown argument --what',)


def test_the_problem_of_the_example_names_the_plugin(factories: dict[str, Any]):
    job = a_job_of_size(101)
    task = job.spec.tasks[0]

    with pytest.raises(PluginProblem, match=r'^plugin "size": task worker is too large'):
        build_plugins(job, factories).customize({"metadata": {"name": "p"}, **task.template}, job, task, 0)
