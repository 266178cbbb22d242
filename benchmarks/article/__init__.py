"""Experiments requested by users, one module each: `python -m benchmarks.article` runs all, or those named after it.

Each runs the scheduler on a simulated cluster with a virtual clock, prints a table and draws a plot into
`benchmarks/out/article/`. A module has a function ``run()`` that returns a `Report`; tests call it and check the
numbers.
"""
