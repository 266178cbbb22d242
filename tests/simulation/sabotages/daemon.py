"""Sabotages of the scheduler process: start, takeover, cycles, answers, end."""

from typing import Final

from tests.simulation.sabotages.sabotage import Sabotage

_TAKEOVER: Final = "kill scheduler*|zone*|*terminat*|rolling*|SIGTERM*"

SABOTAGES: Final = (
    Sabotage(
        "start-barrier-skipped",
        "volcano_py/daemon/daemon.py",
        "        await self._barrier.passed()\n",
        '        self._barrier.waits_for = ""\n',
        "After a takeover, pods that the last leader bound in its last moment are not counted.",
        ("leaders know all binds",),
        ("orderly end scheduler*|rolling update scheduler*", "older state watches|watch stalls pods|slow network*"),
    ),
    Sabotage(
        "takeover-keeps-old-watches",
        "volcano_py/process/lifecycle.py",
        "            self._informers.reconnect()  # what ended the last leader may have silenced our watches",
        "            pass",
        "A new leader schedules on watches that have been dead since the failure of the last one.",
        ("watches are up to date",),
        ("zone fails*|during a decision zone fails",),
    ),
    Sabotage(
        "lost-lease-unnoticed",
        "volcano_py/process/leadership.py",
        "        self.why_lost = await elector.renew()\n        self.lost.set()",
        "        self.why_lost = await elector.renew()",
        "A controller manager that lost its lease once never works again.",
        ("jobs have their pods", "watches are up to date"),
        ("isolation controllers*|pause controllers*|* leases*",),
    ),
    Sabotage(
        "unknown-bind-released",
        "volcano_py/daemon/answers.py",
        "        self._backpressure.leave()\n        self._unclear.log(task=str(bind.task), node=bind.node)",
        "        self._backpressure.leave()\n"
        '        self._cache.binds.failed(bind.task, "its outcome is unknown")\n'
        "        self._unclear.log(task=str(bind.task), node=bind.node)",
        "While the API server is away, the room of pods that it has bound is given away a second time.",
        ("no node above its allocatable",),
        (
            "very late create pods/binding|late create pods/binding|dropped after* create pods/binding",
            "* get pods|* [*] [*]",
        ),
    ),
    Sabotage(
        "back-pressure-leaks",
        "volcano_py/daemon/answers.py",
        "        self._backpressure.leave()\n        self._cache.binds.failed(bind.task, why)",
        "        self._cache.binds.failed(bind.task, why)",
        "After a day of refused binds the scheduler takes no decision any more.",
        ("nothing is under way",),
        ("bind refused for chosen pods*|403 create pods/binding|422 create pods/binding",),
    ),
    Sabotage(
        "no-cycle-after-a-period",
        "volcano_py/daemon/cycle_loop.py",
        "            if report.pending_tasks or report.jobs_refused:",
        "            if report.pending_tasks < 0:",
        "A pod whose bind was refused once waits until something else happens in the cluster.",
        ("nothing left to decide",),
        ("bind refused for chosen pods*|403 create pods/binding|422 create pods/binding",),
    ),
    Sabotage(
        "broken-configuration-ends-the-process",
        "volcano_py/daemon/configuration.py",
        "        except ConfError as error:\n            metrics.refused()",
        "        except FileNotFoundError as error:\n            metrics.refused()",
        "A typing error in the ConfigMap stops the scheduler.",
        ("no process fails",),
        ("configuration broken",),
    ),
    Sabotage(
        "end-without-completing-binds",
        "volcano_py/daemon/daemon.py",
        "        if not await writers.completed(self.options.stop_patience_s):",
        "        if False and not await writers.completed(self.options.stop_patience_s):",
        "A scheduler that is asked to end leaves gangs bound in part.",
        ("orderly end",),
        ("orderly end scheduler*|rolling update scheduler*",),
    ),
    Sabotage(
        "lease-released-before-the-last-answer",
        "volcano_py/daemon/daemon.py",
        "        return not writers.busy\n",
        "        return True\n",
        "A scheduler that is asked to end gives its lease away while its binds are under way.",
        ("the lease is released at last", "no node above its allocatable"),
        ("orderly end scheduler*|rolling update scheduler*", "* create pods/binding|slow network*|webhooks*"),
    ),
    Sabotage(
        "failed-cycle-ends-cycles",
        "volcano_py/daemon/cycle_loop.py",
        "            self._not_before = self._clock.monotonic() + pause_s\n",
        '            self._not_before = float("inf")\n',
        "One exception in a plugin stops the scheduling until the process is restarted.",
        ("nothing left to decide",),
        ("raising plugin*",),
    ),
)
