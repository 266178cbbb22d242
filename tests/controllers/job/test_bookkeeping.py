"""Notes on a job: what a restart has still to kill, and what of them a restart of the whole job makes void."""

from tests.controllers.job.builders import a_job_task, a_member, a_ready_job, members_of
from volcano_py.controllers.job import bookkeeping, volumes
from volcano_py.controllers.job.members import Members

JOB = a_ready_job(a_job_task("a", 3), a_job_task("b", 1))


def a_crowd() -> Members:
    pods = [
        a_member("train-a-0", "Running", partition="0"),
        a_member("train-a-1", "Succeeded", partition="0"),
        a_member("train-a-2", "Running", partition="1", version=1),
        a_member("train-b-0", "Running", uid="u1"),
    ]
    return members_of(JOB, pods)


def victims(*notes: dict[str, str], version: int = 1) -> list[str]:
    together = {key: value for note in notes for key, value in note.items()}
    return [pod.name for pod in bookkeeping.restart_victims(together, a_crowd(), version)]


def test_a_restart_of_the_job_kills_all_pods_of_earlier_versions() -> None:
    everything = {bookkeeping.RESTARTING_ALL: bookkeeping.EVERYTHING}

    assert victims(everything) == ["train-a-0", "train-a-1", "train-b-0"]
    assert victims({bookkeeping.RESTARTING_ALL: bookkeeping.UNFINISHED}) == ["train-a-0", "train-b-0"]
    assert victims(everything, version=2) == ["train-a-0", "train-a-1", "train-a-2", "train-b-0"]


def test_a_restart_of_a_task_kills_its_pods() -> None:
    assert victims(bookkeeping.restart_of_task("a")) == ["train-a-0", "train-a-1", "train-a-2"]


def test_a_restart_of_a_partition_kills_its_pods() -> None:
    assert victims(bookkeeping.restart_of_partition("a", "0")) == ["train-a-0", "train-a-1"]


def test_a_restart_of_a_pod_kills_the_pod_with_that_uid_only() -> None:
    pod = a_member("train-b-0", uid="u1")

    assert victims(bookkeeping.restart_of_pod(pod)) == ["train-b-0"]
    assert victims(bookkeeping.restart_of_pod(a_member("train-b-0", uid="u0"))) == []
    assert victims(bookkeeping.restart_of_pod(a_member("train-b-7"))) == []


def test_several_restarts_kill_each_pod_once() -> None:
    notes = bookkeeping.restart_of_partition("a", "0"), bookkeeping.restart_of_task("a")

    assert victims(*notes) == ["train-a-0", "train-a-1", "train-a-2"]


def test_pods_that_terminate_already_are_not_killed_again() -> None:
    members = a_crowd()
    members.mark_deleting("train-b-0", "u1")
    notes = bookkeeping.restart_of_pod(a_member("train-b-0", uid="u1"))

    assert bookkeeping.restart_victims(notes, members, 1) == []


def test_other_notes_kill_nobody() -> None:
    assert victims({"plugin-svc": "svc", "command": "u", "evicting-train-a-0": "u", "restarts-a": "3"}) == []


def test_a_restart_of_the_whole_job_keeps_only_what_belongs_to_it() -> None:
    notes = {
        "plugin-svc": "svc",
        "volume-pvc-x": "x",
        "command": "u",
        "restarting-all": "everything",
        "evicting-p": "u",
        "restarts-a": "3",
        "delayed-PodEvicted/a/p": "...",
    }

    assert set(bookkeeping.of_past(notes)) == {"plugin-svc", "volume-pvc-x", "command"}


def test_restarts_that_were_spent_are_a_number() -> None:
    assert bookkeeping.spent({"restarts-a": "7"}, "a") == 7
    assert bookkeeping.spent({"restarts-a": "x"}, "a") == 0
    assert bookkeeping.spent({}, "a") == 0


def test_a_job_notes_its_plugins_and_claims_as_in_volcano() -> None:
    job = a_ready_job(plugins={"ssh": [], "env": []}, volumes=[{"volumeClaimName": "data"}, {"volumeClaim": {}}])
    generated = volumes.claim_name(job, 1)

    assert bookkeeping.possessions(job) == {
        "plugin-env": "env",
        "plugin-ssh": "ssh",
        "volume-pvc-data": "data",
        f"volume-pvc-{generated}": generated,
    }
