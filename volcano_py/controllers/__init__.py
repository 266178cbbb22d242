"""The controller manager: controllers that bring objects of the batch system into their desired state.

Each controller has a pure part, which turns objects into writes, and a thin asynchronous part, which watches, queues
and carries out the writes.
"""
