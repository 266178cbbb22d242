"""`volcano-py up`: runs a cluster for kubectl, and prints how to reach it."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

import volcano_py
from volcano_py.apiserver import PortInUse
from volcano_py.apiserver.kinds.quantities import quantity
from volcano_py.cli.flags import add_port
from volcano_py.conf.reload import ConfFile, built_in
from volcano_py.conf.schema import ConfError
from volcano_py.daemon.configuration import Configuration
from volcano_py.local.kubeconfig import KubeconfigError, written_kubeconfig
from volcano_py.local.up import LocalSystem, UpOptions
from volcano_py.runtime.garbage import collect_in_small_steps
from volcano_py.runtime.logs import LEVELS, configure_logging
from volcano_py.runtime.signals import DEFAULT_SIGNALS, Shutdown, shutdown_on_signals
from volcano_py.runtime.supervisor import TaskFailed
from volcano_py.scheduler.third_party import PluginFolder

_MISUSED = 2  # as argparse exits


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the command."""
    add_port(parser)
    parser.add_argument("--nodes", type=_count, default=4, metavar="N", help="how many nodes (default: %(default)s)")
    parser.add_argument("--cpu", type=_quantity, default="4", help="CPUs of every node (default: %(default)s)")
    parser.add_argument("--memory", type=_quantity, default="16Gi", help="memory of every node (default: %(default)s)")
    parser.add_argument(
        "--resource",
        type=_resource,
        action="append",
        default=[],
        metavar="NAME=AMOUNT",
        help="a further resource of every node, such as nvidia.com/gpu=8; may be repeated",
    )
    parser.add_argument(
        "--scheduler-conf",
        type=Path,
        metavar="FILE",
        help="actions and plugins; read again when it changes (default: Volcano's built-in ones)",
    )
    parser.add_argument(
        "--plugins-dir", type=Path, metavar="DIR", help="folder of plugins in Python that --scheduler-conf names"
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="where to write the kubeconfig; it must not exist and is removed at the end (default: a temporary file)",
    )
    parser.add_argument("--log-level", choices=LEVELS, default="warning", help="default: %(default)s")


def run(flags: argparse.Namespace) -> int:
    """Run a cluster in this terminal until a signal ends it; return the exit code."""
    if flags.plugins_dir and not flags.scheduler_conf:
        return _fail(
            "--plugins-dir: the built-in configuration names no plugin of yours; give --scheduler-conf", _MISUSED
        )
    configure_logging(flags.log_level)
    collect_in_small_steps()
    options = UpOptions(flags.port, flags.nodes, flags.cpu, flags.memory, tuple(flags.resource))
    try:
        configuration = _configuration(flags.scheduler_conf, flags.plugins_dir)
        return asyncio.run(_up(options, configuration, flags.kubeconfig))
    except (ConfError, NotADirectoryError) as error:
        return _fail(str(error), _MISUSED)
    except PortInUse as error:
        return _fail(f"{error.strerror}: volcano-py up --port 0", 1)
    except (KubeconfigError, TaskFailed, TimeoutError, OSError) as error:
        return _fail(str(error), 1)


def _configuration(conf: Path | None, plugins: Path | None) -> Configuration:
    """Return what the scheduler does; it logs its warnings, and reads a file again when it changes."""
    folder = PluginFolder(plugins) if plugins else None
    return Configuration.of_file(ConfFile(conf), folder) if conf else Configuration(built_in())


async def _up(options: UpOptions, configuration: Configuration, kubeconfig: Path | None) -> int:
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown, _signals()):
        async with LocalSystem(options, configuration, shutdown) as system:
            if shutdown.graceful.is_set():
                return 0
            with written_kubeconfig(system.url, kubeconfig) as path:
                for line in _welcome(options, system.url, path):
                    print(line, flush=True)
                await system.until_end()
    print("ended: nothing is left running", flush=True)
    return 0


def _signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end it; a closed terminal is one, unless the process ignores SIGHUP (nohup)."""
    closed = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (*DEFAULT_SIGNALS, *closed)


def _welcome(options: UpOptions, url: str, path: Path) -> list[str]:
    further = "".join(f", {amount} {name}" for name, amount in options.extended)
    each = f"{options.cpu} CPU, {options.memory}{further}"
    return [
        f"volcano_py {volcano_py.__version__}: {options.nodes} nodes ({each} each), webhooks, controllers and",
        f"scheduler run in this process; pods are simulated. The API server is {url}. In another terminal:",
        "",
        f"    export KUBECONFIG={path}",
        "    kubectl get nodes",
        "    kubectl apply -f examples/flow.yaml    # in a checkout: jobs that end by themselves",
        "    kubectl get jobflow,vcjob,podgroup,pod",
        "",
        "Volcano's jobs, cron jobs and job flows run. Deployments and Jobs of Kubernetes create no pods here.",
        "Pods of your own need `schedulerName: volcano`. Ctrl-C ends everything.",
    ]


def _fail(message: str, code: int) -> int:
    print(f"volcano-py up: {message}", file=sys.stderr)
    return code


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes: write a whole number from 0")
    return int(text)


def _quantity(text: str) -> str:
    amount = quantity(text)
    if amount is None or amount < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a quantity: write 4, 500m or 16Gi")
    return text


def _resource(text: str) -> tuple[str, str]:
    name, equals, amount = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not a resource: write NAME=AMOUNT, such as nvidia.com/gpu=8")
    return name, _quantity(amount)
