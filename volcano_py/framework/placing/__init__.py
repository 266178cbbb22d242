"""Nodes for tasks: which may take one, which is best, and why the others may not."""
