"""Plugin env."""

from tests.controllers.job.plugins.seen import a_vcjob, the_pod

WITH_INIT = {"initContainers": [{"name": "fetch"}], "containers": [{"name": "main"}, {"name": "side"}]}


def test_every_container_knows_the_number_of_its_pod():
    pod = the_pod(a_vcjob({"env": []}, worker=(9, WITH_INIT)), "worker", 7)

    numbers = {"VK_TASK_INDEX": "7", "VC_TASK_INDEX": "7"}
    assert [pod[name].env for name in ("fetch", "main", "side")] == [numbers] * 3


def test_variables_come_after_those_of_the_template_and_in_one_order():
    template = {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]}

    pod = the_pod(a_vcjob({"env": []}, worker=(1, template)), "worker")

    assert list(pod["main"].env) == ["A", "B", "VK_TASK_INDEX", "VC_TASK_INDEX"]


def test_the_value_of_the_plugin_wins_over_that_of_the_template_and_takes_its_place():
    """In Volcano the name stands twice, and the program sees the later value: that of the plugin."""
    mine = [{"name": name, "value": "mine"} for name in ("VC_TASK_INDEX", "B", "VC_TASK_INDEX")]

    pod = the_pod(a_vcjob({"env": []}, worker=(1, {"containers": [{"name": "main", "env": mine}]})), "worker")

    assert list(pod["main"].env.items()) == [("VC_TASK_INDEX", "0"), ("B", "mine"), ("VK_TASK_INDEX", "0")]
