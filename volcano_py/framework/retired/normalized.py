"""Retired: import from `volcano_py.framework.contract`. The next release removes this module."""

from volcano_py.framework import contract
from volcano_py.framework.contract import RENAMED
from volcano_py.framework.retired import old_module

__getattr__ = old_module(__name__, contract, RENAMED)
