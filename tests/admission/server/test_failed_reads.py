"""A changed file that cannot be read at once is read again: the disk may be slow, or too many files open."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from volcano_py.admission.certificates import generated
from volcano_py.admission.given_certificates import GivenCertificates
from volcano_py.admission.manager import WebhookManager
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.options import Files
from volcano_py.admission.serving import ServedCertificate
from volcano_py.runtime.clock import FakeClock


@pytest.fixture
def fails_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Return a function that lets the next read of a file fail."""

    def fail(path: Path) -> None:
        left = [path]
        for name in ("read_bytes", "read_text"):
            real = getattr(Path, name)

            def read(self: Path, *args: Any, real: Any = real, **options: Any) -> Any:
                if self in left:
                    left.remove(self)
                    raise OSError(24, "Too many open files")
                return real(self, *args, **options)

            monkeypatch.setattr(Path, name, read)

    return fail


async def runs(clock: FakeClock, work: Coroutine[Any, Any, None], done: Callable[[], bool]) -> None:
    """Let work run until it is done."""
    task = asyncio.create_task(work)
    async with asyncio.timeout(10):
        while not done():
            clock.advance(0.1)
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_certificates(tmp_path: Path, fails_once: Callable[[Path], None]) -> None:
    clock = FakeClock(datetime.now(UTC))
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    served = ServedCertificate(AdmissionMetrics(CollectorRegistry()))
    injector: Any = SimpleNamespace(trusted=lambda _: True)
    given = GivenCertificates(files, served, injector, clock)

    def write() -> Any:
        pair, issuer = generated(("127.0.0.1",), datetime.now(UTC), timedelta(days=1))
        for path, content in zip(files, (pair.certificate, pair.key, issuer), strict=True):
            path.write_bytes(content)
        return pair

    write()
    given.load()
    second = write()
    fails_once(files.key)

    await runs(clock, given.watch(), lambda: served.pair == second)


async def test_the_configuration(tmp_path: Path, fails_once: Callable[[Path], None]) -> None:
    clock, path = FakeClock(), tmp_path / "volcano-admission.conf"
    path.write_text("resourceGroups: []")
    manager: Any = SimpleNamespace(_context=SimpleNamespace(clock=clock), _groups=())

    def change() -> bool:
        if clock.monotonic() == pytest.approx(5.0):
            path.write_text("resourceGroups: [{resourceGroup: one}]")
            fails_once(path)
        return bool(manager._groups)

    await runs(clock, WebhookManager._follow(manager, path), change)
