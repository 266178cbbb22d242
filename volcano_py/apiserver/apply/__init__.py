"""Server-side apply: who owns which field, and what an apply may change.

The server records owners from the first server-side apply of an object on. Before that nobody asks for owners, and
recording every write would double the size of every object. Earlier fields belong to the manager
`before-first-apply`, as on a real server for objects without owners. Not implemented: conversion between versions of a
kind, owners of fields that binding, eviction or the server's own controllers set, and defaults of list keys other than
`protocol`.
"""
