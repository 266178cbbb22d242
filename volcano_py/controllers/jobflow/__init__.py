"""Runs the jobs of job flows: each step when the steps that it depends on have completed."""
