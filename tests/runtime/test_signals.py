"""The first signal asks, the second demands."""

import asyncio
import os
import signal

import pytest

from volcano_py.runtime.signals import Shutdown, shutdown_on_signals


def test_the_first_request_is_graceful_the_second_forces_the_third_adds_nothing() -> None:
    forced: list[str] = []
    shutdown = Shutdown(on_force=lambda: forced.append("now"))

    shutdown.request("SIGTERM")
    assert (shutdown.graceful.is_set(), shutdown.force.is_set(), forced) == (True, False, [])
    shutdown.request("SIGINT")
    assert (shutdown.force.is_set(), forced) == (True, ["now"])
    shutdown.request("SIGINT")
    assert forced == ["now"]


async def test_signals_lead_to_the_shutdown_and_the_old_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with shutdown_on_signals(Shutdown(), (signal.SIGUSR1,), together_s=0) as shutdown:
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(shutdown.graceful.wait(), 5)
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(shutdown.force.wait(), 5)

    assert signal.getsignal(signal.SIGUSR1) == before


async def test_a_signal_to_the_process_and_to_its_group_at_once_is_one_request() -> None:
    with shutdown_on_signals(Shutdown(), (signal.SIGUSR1, signal.SIGUSR2), together_s=60) as shutdown:
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(shutdown.graceful.wait(), 5)
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR2)
        await asyncio.sleep(0.01)

        assert not shutdown.force.is_set()


async def test_a_hangup_calls_its_action_each_time_and_asks_for_no_end() -> None:
    calls = asyncio.Queue[None]()
    before = signal.getsignal(signal.SIGHUP)
    with shutdown_on_signals(Shutdown(), on_hangup=lambda: calls.put_nowait(None)) as shutdown:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.wait_for(calls.get(), 5)

    assert not shutdown.graceful.is_set()
    assert signal.getsignal(signal.SIGHUP) == before


async def test_a_closed_terminal_asks_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda number: True)
    calls: list[None] = []
    with shutdown_on_signals(Shutdown(), on_hangup=lambda: calls.append(None)) as shutdown:
        monkeypatch.setattr(os, "isatty", lambda number: False)
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.wait_for(shutdown.graceful.wait(), 5)

    assert calls == []
