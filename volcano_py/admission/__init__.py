"""The package for the admission webhooks. None is built yet.

Each kind of object gets a module of its own, with two pure functions: ``validate`` returns why an object is refused,
and ``mutate`` returns the object with its defaults.
"""
