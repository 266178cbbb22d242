"""One random run: a job, a world in which much goes wrong, and a controller that must bring the job to rest."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from tests.controllers.job.simulation import specs
from tests.controllers.job.simulation.auditor import Wrong, need, recount
from tests.controllers.job.simulation.causes import (
    index_of,
)
from tests.controllers.job.simulation.client import Client, Fate
from tests.controllers.job.simulation.incarnation import Incarnation
from tests.controllers.job.simulation.rest import check_rest
from tests.controllers.job.simulation.specs import NAME
from tests.controllers.job.simulation.stepping import StepLoop
from tests.controllers.job.simulation.world import World
from volcano_py.kube.resource import (
    CONFIG_MAPS,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    PODGROUPS,
    PODS,
    QUEUES,
    SERVICES,
    VCJOBS,
    Resource,
)

_PASSIVE: Final = ("", "Pending")
_FAULTS: Final = (Fate.CONFLICT, Fate.FAILED, Fate.LOST, Fate.LATE, Fate.SLOW, Fate.CRASH_BEFORE, Fate.CRASH_AFTER)
_OWNED: Final = (PODS, PODGROUPS, CONFIG_MAPS, SERVICES, NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS)
_MOST_ROUNDS: Final = 150
_MOST_LOOKS: Final = 400


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log of the controller while runs go on: it would take most of their time."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.reset_defaults()


class Run(World):
    """One random run; the same seed gives the same run."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = self.rng
        self._loop = StepLoop()
        self._fault_rate = rng.choice((0.0, 0.0, 0.05, 0.15, 0.4))
        self._faults = rng.sample(_FAULTS, rng.randint(1, 3))
        self._ends_between = rng.choice((0.0, 0.0, 0.2, 0.5))
        """How probably the controller ends just after the job has entered a phase."""
        self._conflicts = rng.choice((0.0, 0.0, 0.4, 0.7))
        """How probably somebody else changes the job just before its status is written."""
        self._entered = 0
        self._lateness = rng.choice((1, 3, 10))
        """How many changes a watch may show at once."""
        self._down = 0
        """For how many steps the controller is away."""
        self._steps: list[Callable[[], None]] = []

    @property
    def phases(self) -> frozenset[str]:
        """The phases that the job entered."""
        return frozenset(self.audit.phases)

    @property
    def actions(self) -> frozenset[str]:
        """The actions that were carried out."""
        return frozenset(self.audit.actions)

    def run(self) -> list[str]:
        """Run and return the story; raise Wrong with its end if the controller broke a rule."""
        try:
            self._play()
        except (AssertionError, ExceptionGroup) as found:
            wrong: BaseException = found
            while isinstance(wrong, BaseExceptionGroup):
                wrong = wrong.exceptions[0]
            if not isinstance(wrong, AssertionError):
                raise
            story = "\n".join(self.story[-80:])
            raise Wrong(f"{wrong}\nseed {self.seed}, and before that:\n{story}") from wrong
        return self.story

    def _play(self) -> None:
        rng = self.rng
        if rng.random() < 0.9:
            self._make_queue()
        job = self.server.create(VCJOBS, "default", specs.a_random_job(rng))
        self.tell("job", job["spec"])
        self._watch_the_world()
        self._begin_life()
        self._choose_steps()
        for _ in range(rng.choice((30, 60, 120))):
            rng.choice(self._steps)()
            self._watch_the_world()
        self._settle()
        check_rest(self)
        self._check_second_run()
        if rng.random() < 0.5:
            for pod in self._pods("Running"):
                self._end(pod, rng.choice((0, 0, 1, 2)))
            self._settle()
            check_rest(self)
        if "Aborted" in self.audit.phases[-1:] or rng.random() < 0.3:
            self._suspend_and_resume()
        if rng.random() < 0.2:
            self._delete_job()

    def _choose_steps(self) -> None:
        """Choose what may happen in this run, so that runs differ in kind."""
        rng = self.rng
        often: list[tuple[int, Callable[[], None]]] = [
            (6, self._fail), (4, self._succeed), (3, self._restart_container), (4, self._vanish), (4, self._evict),
            (1, self._lose_node), (2, self._scale), (1, self._group_unknown), (1, self._group_back),
            (1, self._relist), (1, self._crash), (1, self._be_away), (1, self._be_lost),
        ]  # fmt: skip
        seldom: list[tuple[int, Callable[[], None]]] = [(2, self._command), (1, self._scale_to_zero)]
        always: list[tuple[int, Callable[[], None]]] = [
            (8, self._look), (8, self._show), (10, self._progress), (4, self._release), (3, self._pass_time),
            (4, self._group), (8, self._bind), (4, self._finish_terminating),
        ]  # fmt: skip
        chosen = [one for one in often if rng.random() < 0.5] + [one for one in seldom if rng.random() < 0.15]
        self._steps = [step for weight, step in (*always, *chosen) for _ in range(weight)]

    # The controller

    def _begin_life(self) -> None:
        client = Client(self.server, self._loop, self._fate, self.audit)
        self.life = Incarnation(self.server, self._loop, self.clock, client, self.audit.record)
        self.lives += 1
        self.tell("the controller starts")

    def _come_back(self) -> None:
        self._down -= 1
        if self._down < 0:
            self._begin_life()

    def _fate(self, verb: str, resource: Resource) -> Fate:
        fate = Fate.DONE
        entered, self._entered = self._entered, len(self.audit.phases)
        if not self.calm and entered != self._entered and self.rng.random() < self._ends_between:
            fate = Fate.CRASH_BEFORE  # the phase is entered, and what follows from it is not done
        elif not self.calm and verb == "patch status" and self.rng.random() < self._conflicts:
            fate = Fate.CONFLICT
        elif not self.calm and self.rng.random() < self._fault_rate:
            fate = self.rng.choice(self._faults)
        self.story.append(f"           {verb} {resource.label} {fate.name if fate is not Fate.DONE else ''}")
        return fate

    def _look(self) -> None:
        life = self.life
        if life is None:
            self._come_back()
            return
        if not life.synced:
            feed = self.rng.choice([feed for feed in life.feeds.values() if not feed.listed])
            feed.list()
            return
        if life.task is not None:
            return
        due = life.turns.due()
        if due:
            life.begin(self.rng.choice(due))
            self._after_look()

    def _after_look(self) -> None:
        life = self.life
        assert life is not None
        if life.client.crashed:
            self._crash()
            return
        job = self.job
        self._note_wanted()
        if job is not None and (record := life.record(job["metadata"]["uid"])) is not None:
            recount(record.members)
            known = record.job
            if known is not None and known.metadata.resource_version == job["metadata"]["resourceVersion"]:
                life.client.unsure = False

    def _progress(self) -> None:
        """Let the controller see and do all that it can."""
        if self.life is None:
            self._come_back()
        if self.life is None:
            return
        for feed in self.shuffled(list(self.life.feeds.values())):
            if feed.listed:
                feed.show(feed.behind)
            else:
                feed.list()
            self._note_wanted()
        for _ in range(5):
            self._look()

    def _note_wanted(self) -> None:
        if self.life is not None and (job := self.job) is not None:
            self.life.note_wanted(job["metadata"]["uid"])

    def _show(self) -> None:
        life = self.life
        if life is None:
            return
        behind = [feed for feed in life.feeds.values() if feed.behind]
        if behind:
            self.rng.choice(behind).show(self.rng.randint(1, self._lateness))
            self._after_look()

    def _relist(self) -> None:
        life = self.life
        if life is not None:
            label = self.rng.choice(sorted(life.feeds))
            self.tell("relist", label)
            life.feeds[label].list()
            self._note_wanted()

    def _release(self) -> None:
        life = self.life
        if life is not None and life.client.held:
            life.client.release(self.rng.randrange(len(life.client.held)))
            life.go_on()
            self._after_look()

    def _crash(self) -> None:
        if self.life is not None:
            self.tell("the controller ends")
            self._down = self.rng.choice((0, 0, 3, 8))
            life, self.life = self.life, None
            life.end(lambda: self.rng.random() < 0.5)

    def _be_away(self) -> None:
        """End for a while in which pods go."""
        self._crash()
        self._down = 6
        for _ in range(self.rng.choice((1, 1, 2))):
            self.rng.choice((self._vanish, self._evict))()

    def _pass_time(self) -> None:
        self.clock.advance(self.rng.choice((0.05, 0.3, 1.0, 4.0, 15.0)))

    # Rest

    def _settle(self) -> None:
        """Let everything that is under way end, without faults, until nothing happens any more."""
        self.calm = True
        if self.server.find(QUEUES, "default") is None:
            self._make_queue()
        self.tell("from now on, all is calm")
        looks = 0
        for _ in range(_MOST_ROUNDS):
            version = self.server.version
            looks += self._round()
            life = self.life
            assert life is not None
            if life.synced and version == self.server.version and not any(one.behind for one in life.feeds.values()):
                pause = life.turns.next_due_s()
                if pause is None:
                    self.calm = False
                    return
                self.clock.advance(pause)
            need(looks < _MOST_LOOKS, f"the job takes {looks} looks and more to come to rest")
        raise Wrong(f"the job does not come to rest in {_MOST_ROUNDS} rounds")

    def _round(self) -> int:
        """Let everything happen once; return how many looks the controller took."""
        if self.life is None:
            self._begin_life()
        life = self.life
        assert life is not None
        while life.client.held:
            life.client.release(0)
            life.go_on()
        for feed in self.shuffled(list(life.feeds.values())):
            if not feed.listed:
                feed.list()
            else:
                feed.show(feed.behind)
            self._note_wanted()
        before = life.looks
        while (due := life.turns.due()) and life.task is None:
            life.begin(due[0])
            self._after_look()
            need(life.looks - before < _MOST_LOOKS, "the controller looks again and again at once")
            self._watch_the_world()
        self.clock.advance(0.1)
        self._move_world()
        return life.looks - before

    def _move_world(self) -> None:
        for pod in self._pods(leaving=True):
            self._take_away(pod)
        self._group()
        if self._may_run():
            for pod in self._pods("Pending", "Unknown"):
                if not (self.stubborn and index_of(pod) == 1):
                    self._run(pod)
        for pod in self._pods("Running"):
            if not pod["status"]["containerStatuses"][0]["ready"]:
                ready = {**pod["status"]["containerStatuses"][0], "ready": True}
                self.server.set_status(PODS, pod["metadata"]["name"], {"containerStatuses": [ready]})
        self._watch_the_world()

    def _check_second_run(self) -> None:
        """Check that a second look writes nothing, and that a controller that starts anew changes nothing."""
        life = self.life
        assert life is not None
        self.calm = True
        writes = life.client.writes
        for key in life.controller._all():
            life.turns.add(key)
        self._look_at_all(life)
        need(life.client.writes == writes, "a second look over the same state writes")
        version = self.server.version
        self._crash()
        self._begin_life()
        life = self.life
        assert life is not None
        for feed in self.shuffled(list(life.feeds.values())):
            feed.list()
        self._look_at_all(life)
        need(self.server.version == version, "a controller that starts anew over the same state changes it")
        self.calm = False

    def _look_at_all(self, life: Incarnation) -> None:
        while due := life.turns.due():
            life.begin(due[0])
            self._after_look()

    def _suspend_and_resume(self) -> None:
        """Suspend a job whose pods may have ended, and go on with it under another controller."""
        for action in ("AbortJob", "ResumeJob"):
            self._issue(action)
            self._settle()
            check_rest(self)
            self._check_second_run()

    # The end of the job

    def _delete_job(self) -> None:
        """Delete the job while the controller lags behind; everything must go, and nothing may come after."""
        job = self.job
        assert job is not None
        foreground = self.rng.random() < 0.5
        self.tell("the job is deleted", "in foreground" if foreground else "in background")
        self.server.delete(VCJOBS, "default", NAME, "", "Foreground" if foreground else "Background")
        for _ in range(20):
            self.rng.choice((self._look, self._show, self._collect, self._vanish))()
        for _ in range(30):
            self.calm = True
            self._round()
            self._collect()
        left = [obj["metadata"]["name"] for resource in _OWNED for obj in self.server.all(resource)]
        need(not left, f"objects of a deleted job are left: {left}")
        life = self.life
        assert life is not None
        need(life.record(job["metadata"]["uid"]) is None, "the controller keeps the record of a deleted job")

    def _collect(self) -> None:
        """Collect garbage: first what a deleted job owned, then a job that waits for that."""
        job = self.job
        if job is not None and "deletionTimestamp" not in job["metadata"]:
            return
        owned = [(resource, obj) for resource in _OWNED for obj in self.server.all(resource)]
        for resource, obj in owned:
            if "deletionTimestamp" not in obj["metadata"]:
                self.server.delete(resource, "default", obj["metadata"]["name"], "")
        if job is not None and not owned:
            self.server.remove((VCJOBS.label, "default", NAME))
