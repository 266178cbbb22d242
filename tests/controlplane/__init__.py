"""A real control plane for tests and benchmarks: its programs, certificates, processes and the way to talk to it."""
