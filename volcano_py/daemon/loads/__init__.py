"""How busy nodes really are: which source is asked, and how often."""

from volcano_py.daemon.loads.keeper import LoadKeeper
from volcano_py.daemon.loads.poller import LoadPoller
from volcano_py.daemon.loads.source import LoadSource

__all__ = ["LoadKeeper", "LoadPoller", "LoadSource"]
