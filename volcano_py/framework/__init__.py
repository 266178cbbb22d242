"""The engine between plugins and actions, in rooms: contract, state, hooks, placing, evicting; the session on top.

`retired/` has the modules of the last release's plugin API. It is part of the search path of this package, so that
``from volcano_py.framework.extension import NodeOrder`` still works, with a warning.
"""

__path__.append(f"{__path__[0]}/retired")
