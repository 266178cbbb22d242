"""Whatever fails: no claim or volume stays promised, and no volume goes to two claims.

Random faults hit every request of every step and every undo: refused, pushed back, conflicting, dropped before and
after it was carried out. Claims, pods and nodes go away, provisioners refuse, and the process is killed at any moment
and started again. Then the faults end, and what is left is looked at.
"""

import asyncio
import random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.effects.objects import JOB, put_pod
from tests.effects.storage import (
    CLAIMS,
    DYNAMIC,
    VOLUMES,
    LaggingWatch,
    VolumeControllers,
    promised,
    put_claim,
    put_classes,
    put_volume,
)
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.effects.preparer import Preparer, PreparerOptions
from volcano_py.effects.promising import Promising
from volcano_py.kube.client import ApiClient
from volcano_py.metrics.preparing import PrepareMetrics
from volcano_py.model.decisions import Bind, BindClaim, PrepareStep, ProvisionClaim
from volcano_py.runtime.clock import RealClock
from volcano_py.runtime.supervisor import Supervisor

OPTIONS = PreparerOptions(retry_first_s=0.005, retry_cap_s=0.02, timeout_s=1.0, attempts=30, wait_s=0.4)
FAULTS: tuple[dict[str, Any], ...] = (
    {"action": "drop_after"},
    {"action": "drop_before"},
    {"action": "reply", "code": 409},
    {"action": "reply", "code": 429, "retry_after_s": 0},
    {"action": "reply", "code": 503},
    {"action": "delay", "delay_s": 0.05},
)
FINAL: dict[str, Any] = {"action": "reply", "code": 403}
PODS = 12


class Trial:
    """Random gangs with claims, and everything that can happen to them."""

    def __init__(self, server: ApiServer, client: ApiClient, seed: int) -> None:
        self.server, self.client = server, client
        self.rng = random.Random(seed)
        put_classes(server)
        self.controllers = VolumeControllers(server, self.rng, 0.02)
        self.controllers.refuses = lambda claim, node: self.rng.random() < 0.3
        self.watch = LaggingWatch(server, self.rng, 0.02)
        self.gone: set[str] = set()  # names of pods that must not be bound any more
        self.sent: set[str] = set()  # uids
        self.ended: set[str] = set()
        self.volumes: list[str] = []
        self.gangs = [self._gang(number) for number in range(4)]

    def _gang(self, gang: int) -> list[Bind]:
        return [self._bind(f"{gang}-{pod}") for pod in range(PODS // 4)]

    def _bind(self, name: str) -> Bind:
        node = f"n{self.rng.randrange(3)}"
        steps: list[PrepareStep] = []
        for number in range(self.rng.randrange(3)):
            key = f"{name}-{number}"
            if self.rng.random() < 0.5:
                steps.append(BindClaim("default", key, put_claim(self.server, key), self._volume(key, node)))
            else:
                steps.append(ProvisionClaim("default", key, put_claim(self.server, key, DYNAMIC), node))
        return Bind(put_pod(self.server, name), node, JOB, tuple(steps))

    def _volume(self, key: str, node: str) -> str:
        """Return a new volume, or now and then one that another claim wants, too."""
        if self.volumes and self.rng.random() < 0.3:
            return self.rng.choice(self.volumes)
        put_volume(self.server, f"v{key}", node)
        self.volumes.append(f"v{key}")
        return f"v{key}"

    @property
    def binds(self) -> list[Bind]:
        return [bind for gang in self.gangs for bind in gang]

    # What the preparer reports

    def send(self, binds: Any) -> None:
        self.sent |= {bind.task.uid for bind in binds}

    def bind_failed(self, bind: Bind, why: str) -> None:
        self.ended.add(bind.task.uid)

    def bind_withdrawn(self, bind: Bind, why: str) -> None:
        self.ended.add(bind.task.uid)

    def preparing(self, bind: Bind, missing: str) -> None:
        pass

    def prepared(self, bind: Bind, seconds: float) -> None:
        assert seconds >= 0

    def gang_failed(self, outcome: Any) -> None:
        pass

    # What happens

    def preparer(self, supervisor: Supervisor) -> Preparer:
        made = Preparer(
            Promising(self.client, self.watch, owner="volcano", timeout_s=OPTIONS.timeout_s),
            self.send,
            self,  # type: ignore[arg-type]
            BindBackpressure(),
            PrepareMetrics(CollectorRegistry()),
            clock=RealClock(),
            rng=self.rng,
            objection=lambda bind: "gone" if bind.task.name in self.gone else "",
            options=OPTIONS,
        )
        self.watch.on_change(made.changed)
        made.start(supervisor)
        return made

    def break_requests(self) -> None:
        for resource in (CLAIMS, VOLUMES):
            for verb in ("get", "patch"):
                for fault in self.rng.sample(FAULTS, 2):
                    rule = Fault(
                        verb=verb, resource=resource, probability=0.25, seed=self.rng.randrange(10**6), **fault
                    )
                    self.server.faults.add(rule)
        rule = Fault(
            verb="patch", resource="persistentvolume*", probability=0.1, seed=self.rng.randrange(10**6), **FINAL
        )
        rule.times = 2
        self.server.faults.add(rule)

    def happen(self) -> None:
        """Let something happen to a pod, a node or a claim."""
        bind = self.rng.choice(self.binds)
        if self.rng.random() < 0.5:
            self.gone.add(bind.task.name)
        elif bind.prepare:
            claim = self.rng.choice(bind.prepare).claim
            if self.server.get(CLAIMS, claim, "default") is not None and self.rng.random() < 0.5:
                self.server.registry.delete(self.server.resources.named(CLAIMS), "default", claim)

    def orphans(self) -> list[PrepareStep]:
        """Return every promise, as a recovery by reading finds them; that of a user or a bound claim is none."""
        steps: list[PrepareStep] = [step for bind in self.binds for step in bind.prepare]
        return steps


@pytest.mark.parametrize("seed", range(12))
async def test_nothing_stays_promised_whatever_fails(server: ApiServer, client: ApiClient, seed: int) -> None:
    trial = Trial(server, client, seed)
    await until(lambda: trial.watch.up_to_date)
    trial.break_requests()
    async with Supervisor() as supervisor:
        preparer = trial.preparer(supervisor)
        for gang in trial.gangs:
            preparer.submit(gang)
            await asyncio.sleep(trial.rng.uniform(0, 0.05))
            trial.happen()
        await asyncio.sleep(0.1)
        trial.happen()
        await until(lambda: not preparer.busy, 30)

    server.faults.clear()
    await settled(trial)
    assert promised(server, trial.controllers.completed) == []
    assert trial.sent | trial.ended == {bind.task.uid for bind in trial.binds}
    assert not trial.sent & trial.ended
    for gang in trial.gangs:
        assert len({bind.task.uid in trial.sent for bind in gang}) == 1, "a gang is sent as a whole or not at all"


@pytest.mark.parametrize("seed", range(8))
async def test_nothing_stays_promised_by_a_process_that_was_killed(
    server: ApiServer, client: ApiClient, seed: int
) -> None:
    trial = Trial(server, client, seed)
    trial.controllers.provisions = lambda claim: trial.rng.random() < 0.3
    await until(lambda: trial.watch.up_to_date)
    trial.break_requests()
    async with Supervisor() as supervisor:
        preparer = trial.preparer(supervisor)
        for gang in trial.gangs:
            preparer.submit(gang)
        await asyncio.sleep(trial.rng.uniform(0.0, 0.3))
        trial.happen()
    server.faults.clear()  # the supervisor has ended everything within a request, as SIGKILL does

    async with Supervisor() as supervisor:
        preparer = trial.preparer(supervisor)
        await until(lambda: trial.watch.up_to_date)
        preparer.undo_orphans(trial.orphans())
        assert await preparer.undone(10)
        await settled(trial)
        left = promised(server, trial.controllers.completed)
        assert [one for one in left if not released(server, one)] == []
        written = server.requests.count("patch")

        preparer.undo_orphans(trial.orphans())
        assert await preparer.undone(10)

    assert server.requests.count("patch") == written


async def settled(trial: Trial) -> None:
    """Wait until the controllers have nothing more to do."""
    before = None
    while before != (now := trial.server.store.rv):
        before = now
        for _ in range(10):  # in small steps: if the process stands still, the controllers do, too
            await asyncio.sleep(0.01)


def released(server: ApiServer, text: str) -> bool:
    """Say whether the volume controller has released a volume because its claim is gone.

    A new process cannot know whether the claim was bound before, so that the volume contains data: it leaves it alone.
    """
    volume = server.get(VOLUMES, text.split()[1])
    return volume is not None and volume["status"]["phase"] == "Released"
