"""The policies, one module each, and the table of those there are."""

from typing import Final

from volcano_py.framework.plugin import Plugin
from volcano_py.plugins.binpack import Binpack
from volcano_py.plugins.gang import Gang
from volcano_py.plugins.nodeorder import NodeOrdering
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.priority import Priority

PLUGINS: Final[dict[str, type[Plugin]]] = {
    plugin.name: plugin for plugin in (Binpack, Gang, NodeOrdering, Predicates, Priority)
}
"""Plugin by its name in the conf."""
