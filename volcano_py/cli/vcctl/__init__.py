"""`vcctl`: jobs, queues, pods and job flows from the command line."""


def main() -> int:
    """Run the command of the command line and return the exit code."""
    from volcano_py.cli.vcctl.program import start

    return start("vcctl")
