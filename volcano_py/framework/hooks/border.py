"""The border between the framework and plugins of others: what they are given, and what of their answers passes.

They get columns that they cannot change, and an invalid answer becomes a failure of the plugin, with file and line.
Built-in plugins are asked directly, so the border costs them nothing.
"""

from collections.abc import Callable
from typing import Any

from volcano_py.framework.contract.answers import CHECKS, Asked, InvalidAnswer
from volcano_py.framework.contract.failures import invalid, raised
from volcano_py.framework.contract.read_only import ReadOnlyState
from volcano_py.framework.state.state import State


class Border:
    """The border of one session."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._given: ReadOnlyState | None = None

    def state(self) -> ReadOnlyState:
        """Return the state that plugins of others read."""
        if self._given is None:
            self._given = ReadOnlyState(self._state)
        return self._given

    def ask(self, plugin: Any, method: str, function: Callable[..., Any], kind: str, args: tuple[Any, ...]) -> Any:
        """Ask a plugin of others; raise PluginFailed if its answer is not of this kind (`contract.answers`)."""
        given = self.state().given
        try:
            answer = function(*[given(arg) for arg in args])
        except (Exception, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # a cancellation, or the panic of a library in Rust, must not end the process
            raise raised(plugin, method, error) from error
        check = CHECKS.get(kind)
        if check is None:
            return answer
        try:
            return check(Asked(plugin, args, self._state), answer)
        except InvalidAnswer as problem:
            raise invalid(plugin, method, str(problem), function) from None
