"""Renamed names of the plugin API: the old names work for one release, with a warning.

The modules in this folder are old modules (`volcano_py.framework.extension` and so on). The next release removes
the folder.
"""

import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

_RELEASE = "the next release"


def warn(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn the caller of a plugin API that it uses an old name."""
    text = f"{old} is now {new}: use the new name; {_RELEASE} removes the old one"
    warnings.warn(text, FutureWarning, stacklevel=stacklevel)


def old_module(name: str, contract: ModuleType, renamed: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose names are in `framework.contract` now, some of them renamed."""

    def get(attribute: str) -> Any:
        new = renamed.get(attribute, attribute)
        if attribute.startswith("__") or not hasattr(contract, new):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        warn(f"{name}.{attribute}", f"{contract.__name__}.{new}")
        return getattr(contract, new)

    return get


def rename_methods(cls: type, renamed: Mapping[str, str]) -> None:
    """Give methods that a class defines under old names their new names as well."""
    for old, new in renamed.items():
        if old in vars(cls) and new not in vars(cls):
            warn(f"{cls.__name__}.{old}", new, stacklevel=5)
            setattr(cls, new, vars(cls)[old])


def method(answer: Any, new: str, old: str) -> Any:
    """Return a method of an object that a plugin made; the method may still have its old name."""
    if not hasattr(answer, new) and hasattr(answer, old):
        warn(f"{type(answer).__name__}.{old}", new)
        return getattr(answer, old)
    return getattr(answer, new)


def add_old_names(cls: type, renamed: Mapping[str, str]) -> None:
    """Let attributes of a class be read under old names; a new name may be a dotted path.

    Properties, and no ``__getattr__``: with one, Python looks up every attribute of the class four times slower.
    """
    for old, path in renamed.items():
        setattr(cls, old, property(_reader(old, path)))


def _reader(old: str, path: str) -> Callable[[Any], Any]:
    def read(self: Any) -> Any:
        warn(f"{type(self).__name__}.{old}", path)
        found = self
        for name in path.split("."):
            found = getattr(found, name)
        return found

    return read
