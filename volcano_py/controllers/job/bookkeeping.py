"""What a job notes for later in ``status.controlledResources``, a map of text that Volcano uses for such notes, too.

plugin-NAME, volume-pvc-NAME      as in Volcano: objects of plugins, and claims
command                           uid of the Command that was carried out last
restarting-all                    a restart kills the pods of earlier versions: "everything", "unsuccessful" or
                                  "unfinished"
restarting-task/T                 a restart kills the pods of task T
restarting-partition/T/ID         a restart kills the pods of this partition of task T
restarting-pod/NAME               a restart kills this pod, whose uid is the value
evicting-NAME                     somebody else deletes or deleted this pod, and a policy will answer; the value is
                                  its uid
restarts-T                        restarts of pods of task T that do not exist any more
task-failed-T                     restarts of task T when a policy last answered that it used up its restarts
answered-pod/NAME                 Volcano has counted that this pod failed, and has not acted; the value is its uid
answered-group                    Volcano has not acted on the phase Unknown of this PodGroup; the value is its uid
completed-T                       indices of task T whose pods have succeeded and are gone, such as "0-3,7"
delayed-...                       see `delays`
"""

from collections.abc import Iterable, Mapping, Set
from typing import Final

from volcano_py.api.batch import Job
from volcano_py.controllers.job import delays, objects, volumes
from volcano_py.controllers.job.members import ENDED, FAILED, Member, Members

COMMAND: Final = "command"
RESTARTING: Final = "restarting-"
RESTARTING_ALL: Final = f"{RESTARTING}all"
EVERYTHING: Final = "everything"
UNSUCCESSFUL: Final = "unsuccessful"
UNFINISHED: Final = "unfinished"
KILLED_ENDED: Final = {EVERYTHING: ENDED, UNSUCCESSFUL: frozenset({FAILED})}
"""The phases of pods that have ended and that a restart of the whole job kills, by the value of its note."""
EVICTING: Final = "evicting-"
SPENT: Final = "restarts-"
TASK_FAILED: Final = "task-failed-"
ANSWERED: Final = "answered-"
ANSWERED_POD: Final = f"{ANSWERED}pod/"
ANSWERED_GROUP: Final = f"{ANSWERED}group"
COMPLETED: Final = "completed-"
PLUGIN: Final = "plugin-"
CLAIM: Final = "volume-pvc-"

Notes = dict[str, str]


def possessions(job: Job) -> Notes:
    """Return the notes about the objects of plugins and the claims of a job."""
    claims = (volumes.claim_name(job, index) for index in range(len(job.spec.volumes)))
    return {f"{PLUGIN}{name}": name for name in sorted(job.spec.plugins)} | {f"{CLAIM}{name}": name for name in claims}


def without(notes: Mapping[str, str], *prefixes: str) -> Notes:
    """Return the notes whose keys begin with none of these."""
    return {key: value for key, value in notes.items() if not key.startswith(prefixes)}


def restart_of_task(task: str) -> Notes:
    """Return the note that a restart kills the pods of a task."""
    return {f"{RESTARTING}task/{task}": task}


def restart_of_partition(task: str, partition: str) -> Notes:
    """Return the note that a restart kills the pods of a partition."""
    return {f"{RESTARTING}partition/{task}/{partition}": partition}


def restart_of_pod(member: Member) -> Notes:
    """Return the note that a restart kills a pod."""
    return {f"{RESTARTING}pod/{member.name}": member.uid}


def restart_victims(notes: Mapping[str, str], members: Members, version: int) -> list[Member]:
    """Return the pods that a noted restart has still to kill."""
    found: dict[str, Member] = {}
    for key, value in notes.items():
        if not key.startswith(RESTARTING):
            continue
        kind, _, rest = key.removeprefix(RESTARTING).partition("/")
        victims: Iterable[Member] = ()
        if key == RESTARTING_ALL:
            victims = members.victims(ended=KILLED_ENDED.get(value, frozenset()), below=version)
        elif kind == "task":
            victims = members.victims(ended=ENDED, task=rest)
        elif kind == "partition":
            task = rest.rpartition("/")[0]
            victims = (one for one in members.victims(ended=ENDED, task=task) if one.partition == value)
        elif kind == "pod" and (member := members.get(rest)) is not None and member.uid == value:
            victims = () if member.deleting else (member,)
        found.update((member.name, member) for member in victims)
    return [found[name] for name in sorted(found)]


def spent(notes: Mapping[str, str], task: str) -> int:
    """Return the restarts of pods of a task that do not exist any more."""
    return objects.number(notes.get(f"{SPENT}{task}", "")) or 0


def is_victim(notes: Mapping[str, str], version: int, member: Member) -> bool:
    """Say whether a noted restart kills a pod, if it kills pods that have ended."""
    return (
        (notes.get(RESTARTING_ALL) == EVERYTHING and member.version < version)
        or f"{RESTARTING}task/{member.task}" in notes
        or f"{RESTARTING}partition/{member.task}/{member.partition}" in notes
        or notes.get(f"{RESTARTING}pod/{member.name}") == member.uid
    )


def completed(notes: Mapping[str, str], task: str, replicas: int) -> set[int]:
    """Return the indices of a task whose pods have succeeded and are gone; what cannot be read is left out."""
    found: set[int] = set()
    for part in notes.get(f"{COMPLETED}{task}", "").split(","):
        first, _, last = part.partition("-")
        begin, end = objects.number(first), objects.number(last or first)
        if begin is not None and end is not None:
            found.update(range(max(0, begin), min(end, replicas - 1) + 1))
    return found


def completion(task: str, indices: Set[int]) -> Notes:
    """Return the note about the indices of a task whose pods have succeeded and are gone, in order."""
    parts: list[list[int]] = []
    for index in sorted(indices):
        if parts and parts[-1][-1] == index - 1:
            parts[-1][1:] = [index]
        else:
            parts.append([index])
    return {f"{COMPLETED}{task}": ",".join("-".join(map(str, part)) for part in parts)} if parts else {}


def of_present(notes: Mapping[str, str], members: Members, unknown_group: str) -> Notes:
    """Return the notes without those about pods that are gone: whatever the end of these led to is done.

    What pods have completed stays noted, as far as it counts. ``unknown_group`` is the uid of the PodGroup if its phase
    is Unknown.
    """
    found = {key: value for key, value in notes.items() if _is_present(key, value, members, unknown_group)}
    for task, indices in members.completed.items():
        found |= completion(task, indices)
    return found


def _is_present(key: str, value: str, members: Members, unknown_group: str) -> bool:
    if key == ANSWERED_GROUP:
        return value == unknown_group
    if key.startswith(COMPLETED):
        return False
    for prefix in (EVICTING, ANSWERED_POD):
        if key.startswith(prefix):
            member = members.get(key.removeprefix(prefix))
            return member is not None and member.uid == value
    return True


def answered_restarts(notes: Mapping[str, str], task: str) -> int:
    """Return with how many restarts of a task a policy answered that it failed, 0 if none did."""
    return objects.number(notes.get(f"{TASK_FAILED}{task}", "")) or 0


def of_past(notes: Mapping[str, str]) -> Notes:
    """Return the notes without those that a restart, end or abortion of the whole job makes void."""
    return without(notes, RESTARTING, EVICTING, SPENT, TASK_FAILED, ANSWERED, delays.PREFIX)
