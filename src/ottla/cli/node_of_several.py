"""One node of `ottla start --nodes N`, in a process of its own: `python -m ottla.cli.node_of_several FILE NUMBER`.

NUMBER is the reading end of a pipe whose other end the process has that started it. However that one ends, by kill -9
too, the pipe ends with it, and so does the node, in good order: nobody is left who would stop it.
"""

import os
import sys

from ottla.model.properties import Settings
from ottla.model.properties.file import parse_properties
from ottla.node.process import run


def main() -> int:
    path, number = sys.argv[1:]
    owner = int(number)
    os.set_inheritable(owner, False)  # what the node starts must not wait for its owner
    with open(path, encoding="utf-8") as file:
        settings = Settings.from_properties(parse_properties(file.read()))
    return run(settings, owner)


if __name__ == "__main__":
    sys.exit(main())
