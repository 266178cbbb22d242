"""`kubectl_complete-vc`: completion of `kubectl vc`. kubectl finds it by this name and asks it for candidates."""


def main() -> int:
    """Print what may stand in place of the last word and return the exit code."""
    import sys

    from volcano_py.cli.vcctl.completion import print_for_kubectl

    return print_for_kubectl(sys.argv[1:])
