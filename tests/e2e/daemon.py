"""The scheduler daemon as a child process of a test, under the ServiceAccount of manifests/."""

from __future__ import annotations

import sys
from pathlib import Path

from volcano_py.local.scheduler import GANG_CONF, NO_GANG_CONF

__all__ = ["GANG_CONF", "NO_GANG_CONF", "Daemon"]

VC_SCHEDULER = Path(sys.executable).with_name("vc-scheduler")
