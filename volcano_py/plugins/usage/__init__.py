"""Usage: how busy nodes really are."""

from volcano_py.plugins.usage.plugin import Usage

__all__ = ["Usage"]
