"""A small synchronous client of the API server for short commands, and the answers that commands give from it.

It starts in a tenth of the time of `volcano_py.kube`, which is made for processes that run for months. Modules here
print nothing: `volcano_py.cli.vcctl` does.
"""
