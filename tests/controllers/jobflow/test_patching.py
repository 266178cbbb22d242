"""Patches of job templates."""

from typing import Any

import pytest

from volcano_py.controllers.jobflow.patching import PatchProblem, patched, without_effect


def a_spec() -> dict[str, Any]:
    container = {"name": "main", "image": "old", "env": [{"name": "A", "value": "1"}], "args": ["x", "y"]}
    task = {"name": "web", "replicas": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    return {"queue": "ml", "minAvailable": 1, "tasks": [task, {"name": "db", "replicas": 2}]}


def test_fields_are_replaced_and_the_others_stay() -> None:
    assert patched({"queue": "ml", "minAvailable": 1}, {"minAvailable": 3}) == {"queue": "ml", "minAvailable": 3}


def test_tasks_containers_and_variables_are_merged_by_name() -> None:
    container = {"name": "main", "image": "new", "env": [{"name": "B", "value": "2"}], "args": ["z"]}
    patch = {"tasks": [{"name": "web", "template": {"spec": {"containers": [container]}}}]}

    web, db = patched(a_spec(), patch)["tasks"]

    assert db == {"name": "db", "replicas": 2}
    assert web["replicas"] == 1
    assert web["template"]["spec"]["restartPolicy"] == "Never"
    (main,) = web["template"]["spec"]["containers"]
    assert main == {
        "name": "main",
        "image": "new",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "args": ["z"],
    }


def test_a_task_of_a_new_name_is_added() -> None:
    assert [task["name"] for task in patched(a_spec(), {"tasks": [{"name": "new"}]})["tasks"]] == ["web", "db", "new"]


@pytest.mark.parametrize("key", ["name", "mountPath"])
def test_volumes_of_pods_go_by_name_and_those_of_jobs_by_path(key: str) -> None:
    spec = {"volumes": [{key: "/a", "x": 1}, {key: "/b", "x": 2}]}

    assert patched(spec, {"volumes": [{key: "/b", "x": 3}]}) == {"volumes": [{key: "/a", "x": 1}, {key: "/b", "x": 3}]}


def test_the_template_itself_is_not_changed() -> None:
    spec = a_spec()

    patched(spec, {"tasks": [{"name": "web", "replicas": 9}], "queue": "other"})

    assert spec == a_spec()


def test_an_item_without_its_key_is_refused() -> None:
    with pytest.raises(
        PatchProblem, match=r"patch\.jobSpec\.tasks\[web\]\.template\.spec\.containers\[0\] has no name"
    ):
        patched(a_spec(), {"tasks": [{"name": "web", "template": {"spec": {"containers": [{"image": "i"}]}}}]})


def test_values_that_the_api_server_may_have_added_change_nothing() -> None:
    patch = {"queue": "default", "maxRetry": 3, "minAvailable": 2}

    assert patched({"queue": "ml", "maxRetry": 5}, patch) == {"queue": "ml", "maxRetry": 5, "minAvailable": 2}
    assert without_effect({"queue": "ml", "maxRetry": 3}, patch) == ["queue"]


@pytest.mark.parametrize("patch", [{"queue": "default"}, {"maxRetry": 3}, {"queue": "other", "maxRetry": 4}])
def test_values_that_only_a_user_can_have_written_count(patch: dict[str, Any]) -> None:
    assert patched({"queue": "ml", "maxRetry": 5}, patch) == {"queue": "ml", "maxRetry": 5, **patch}
    assert without_effect({"queue": "ml", "maxRetry": 5}, patch) == []


def test_of_two_items_with_one_name_the_first_is_changed_and_an_added_item_can_be_changed_again() -> None:
    volumes = [{"name": "a", "mountPath": "/1"}, {"name": "a", "mountPath": "/2"}]
    patch = [{"name": "a", "x": 1}, {"name": "b", "mountPath": "/3"}, {"mountPath": "/3", "y": 2}, {"name": ["c"]}]

    assert patched({"volumes": volumes}, {"volumes": patch})["volumes"] == [
        {"name": "a", "mountPath": "/1", "x": 1},
        volumes[1],
        {"name": "b", "mountPath": "/3", "y": 2},
        {"name": ["c"]},
    ]


def test_an_item_is_found_by_the_path_that_the_patch_has_given_it() -> None:
    patch = [{"name": "a", "mountPath": "/2"}, {"mountPath": "/2", "x": 1}, {"mountPath": "/1", "y": 2}]

    assert patched({"volumes": [{"name": "a", "mountPath": "/1"}]}, {"volumes": patch})["volumes"] == [
        {"name": "a", "mountPath": "/2", "x": 1},
        {"mountPath": "/1", "y": 2},
    ]


def test_a_patch_of_a_hundred_thousand_variables_takes_time_that_grows_with_their_number() -> None:
    """All controllers wait meanwhile; one comparison of each with each would take hours."""
    spec, patch = ({"env": [{"name": f"{letter}{i}"} for i in range(50_000)]} for letter in "xy")

    assert len(patched(spec, patch)["env"]) == 100_000
