"""Files that commands are given."""

import sys

from ottla.cli.failures import Failure


def text_of(path: str) -> str:
    """`-` is standard input. Raises Failure, and OSError, which is told with the path."""
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        what = "standard input" if path == "-" else path
        raise Failure(f"{what} is no text in UTF-8: {error.reason} (byte {error.start})") from error
