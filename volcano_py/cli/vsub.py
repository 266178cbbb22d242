"""`vsub`: one command of `volcano_py.cli.vcctl` as a program of its own."""


def main() -> int:
    """Run the command of the command line and return the exit code."""
    from volcano_py.cli.vcctl.program import start

    return start("vsub")
