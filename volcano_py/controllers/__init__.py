"""The controller manager: controllers that keep objects of the batch system as they should be.

Each has a pure part (objects in, writes out) and a thin asynchronous part that watches, queues and carries out.
"""
