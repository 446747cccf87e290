"""The command line, one file per tool. Nothing heavy is imported here: a tool's module is loaded when it is named."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt


def main() -> int:
    """The `ottla` entry point. 0: done, 1: failed, 2: the command line is wrong, 130: interrupted."""
    from ottla.runtime.standard_streams import open_missing

    open_missing()
    import sys

    from ottla.cli.app import run

    return run(sys.argv[1:])
