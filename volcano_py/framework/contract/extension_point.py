"""What every extension point is."""

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

from volcano_py.framework.retired import rename_methods


class ExtensionPoint(ABC):
    """A question the framework asks plugins."""

    renamed: ClassVar[Mapping[str, str]] = {}  # old -> new names of its methods, see `framework.retired`
    switch: ClassVar[str]  # the conf flag that silences a plugin at this point, "" for none
    shortcuts: ClassVar[Mapping[str, str]] = {}
    """Its shortcuts -> the questions that they answer in advance, for many jobs, queues or tasks at once.

    A class that answers such a question itself does not inherit the shortcut of another answer: without a shortcut of
    its own, each is asked about.
    """
    also: ClassVar[str] = ""  # another flag; while it is on, ``switch`` alone does not silence the plugin

    def __init_subclass__(cls, **options: Any) -> None:
        """Accept methods under their old names, and leave out shortcuts of answers that are overridden."""
        super().__init_subclass__(**options)
        rename_methods(cls, {old: new for base in cls.__mro__ for old, new in getattr(base, "renamed", {}).items()})
        for base in cls.__mro__:
            for shortcut, question in vars(base).get("shortcuts", {}).items():
                if getattr(cls, shortcut) is not vars(base)[shortcut] and overrides(cls, question, shortcut):
                    setattr(cls, shortcut, vars(base)[shortcut])


def overrides(cls: type, question: str, said: str) -> bool:
    """Say whether a class gets its answer to a question from a subclass of the one that ``said`` something about it."""
    return _place(cls, question) < _place(cls, said)


def _place(cls: type, name: str) -> int:
    return next(place for place, base in enumerate(cls.__mro__) if name in vars(base))
