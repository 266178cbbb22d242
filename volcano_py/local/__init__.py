"""A whole system in one process: API server, nodes, scheduler. For `volcano-py demo` and for experiments."""
