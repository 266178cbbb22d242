"""Nouns that several layers reason about: resources, statuses, tasks, jobs, queues, nodes, decisions, rejections."""
