"""`vcctl version`."""

import os
import sys
from typing import Final

import volcano_py
from volcano_py.cli.vcctl.call import Call

API_VERSION: Final = "v1alpha1"
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_UNKNOWN: Final = "Not provided."


def print_version(call: Call) -> int:
    """Print the version, under the names of Volcano's programs; there is no Go here."""
    python = ".".join(map(str, sys.version_info[:3]))
    machine = os.uname().machine
    call.line(f"API Version: {API_VERSION}")
    call.line(f"Version: {volcano_py.__version__}")
    call.line(f"Git SHA: {_UNKNOWN}")
    call.line(f"Built At: {_UNKNOWN}")
    call.line(f"Go Version: none (Python {python})")
    call.line(f"Go OS/Arch: {sys.platform}/{_MACHINES.get(machine, machine)}")
    return 0
