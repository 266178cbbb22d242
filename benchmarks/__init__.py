"""Benchmarks: workloads as data, one runner, results stored as JSON. Compare ratios of one run, not absolute times."""
