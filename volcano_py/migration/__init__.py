"""Looks at a cluster that runs Volcano, and says what will be the same here, what differs and what is missing.

Every judgement is a plain function over objects as JSON brings them. `reading` fetches the objects, `check` asks all
judges, and `volcano_py.cli.migrate` prints the report.
"""
