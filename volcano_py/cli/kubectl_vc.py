"""`kubectl vc`: `vcctl` as a plugin of kubectl, which finds it by its name `kubectl-vc`."""


def main() -> int:
    """Run the command of the command line and return the exit code."""
    from volcano_py.cli.vcctl.program import start

    return start("vcctl")
