"""Server-side apply: who owns which field, and what follows from it when somebody applies a configuration.

Owners are recorded from the first server-side apply of an object on: until then nobody asks for them, and recording
every write would double the size of every object. What was there before belongs to the manager `before-first-apply`,
as on a real server for objects without owners. Not done: conversion between versions of a kind, owners of fields that
binding, eviction or the server's own controllers set, and defaults of list keys other than `protocol`.
"""
