"""What every extension point is."""

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

from volcano_py.framework.retired import rename_methods


class ExtensionPoint(ABC):
    """A question the framework asks plugins."""

    renamed: ClassVar[Mapping[str, str]] = {}  # old -> new names of its methods, see `framework.retired`
    switch: ClassVar[str]  # the conf flag that silences a plugin at this point, "" for none
    also: ClassVar[str] = ""  # another flag; while it is on, ``switch`` alone does not silence the plugin

    def __init_subclass__(cls, **options: Any) -> None:
        """Accept methods under their old names."""
        super().__init_subclass__(**options)
        rename_methods(cls, {old: new for base in cls.__mro__ for old, new in getattr(base, "renamed", {}).items()})
