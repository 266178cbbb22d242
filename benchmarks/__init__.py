"""Benchmarks: workloads as data, one runner, results kept as JSON. Compare ratios of one run, not absolute times."""
