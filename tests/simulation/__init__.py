"""Deterministic simulation of the whole system: one thread, a virtual clock, and faults that come from one seed."""
