"""The scheduler process: watches, cache, cycles in a thread of their own, and effects, from start to orderly end."""
