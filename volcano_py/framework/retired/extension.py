"""Retired: import from `volcano_py.framework.contract`. This module goes with the next release."""

from volcano_py.framework import contract
from volcano_py.framework.contract import RENAMED
from volcano_py.framework.retired import old_module

__getattr__ = old_module(__name__, contract, RENAMED)
