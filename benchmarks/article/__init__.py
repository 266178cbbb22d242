"""The experiments that users came with, one module each: `python -m benchmarks.article.e1`, or all, without `e1`.

Each runs the scheduler over a simulated cluster on a virtual clock, prints a table and draws a plot into
`benchmarks/out/article/`. A module has a function ``run()`` that returns a `Report`; tests call it and assert numbers.
"""
