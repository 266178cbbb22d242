"""The default configuration: Volcano's built-in one."""

from typing import Final

BUILT_IN_FILE: Final = "(built-in configuration)"

BUILT_IN_CONF: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
