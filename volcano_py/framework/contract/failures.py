"""What is said of a plugin that raises or gives an invalid answer: the plugin, the question, and file and line."""

import inspect
from collections.abc import Callable
from typing import Any

from volcano_py.framework.contract.plugin import PluginFailed


def raised(plugin: Any, method: str, error: BaseException) -> PluginFailed:
    """Return an error of a plugin as PluginFailed, with the last line of the plugin's own module that ran."""
    if isinstance(error, PluginFailed):
        return error
    where = _line_of(error, _module(plugin)) or _definition(getattr(plugin, method, None))
    return PluginFailed(plugin.name, method, said(error), where)


def said(error: BaseException) -> str:
    """Return the kind of an error and its text."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as problem:  # noqa: BLE001 - the text is made by code of the plugin, too
        return f"{type(error).__name__}, whose text cannot be made: {type(problem).__name__}"


def invalid(plugin: Any, method: str, problem: str, asked: Callable[..., Any] | None = None) -> PluginFailed:
    """Return an invalid answer as PluginFailed, with the line at which the method, or what was ``asked``, begins."""
    return PluginFailed(plugin.name, method, problem, _definition(asked or getattr(plugin, method, None)))


def _module(plugin: Any) -> str:
    return (plugin if isinstance(plugin, type) else type(plugin)).__module__


def _line_of(error: BaseException, module: str) -> str:
    found, step = "", error.__traceback__
    while step is not None:
        if step.tb_frame.f_globals.get("__name__") == module:
            found = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _definition(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
