"""What is wrong with a statement: code, message, the statement and the place in it."""

from typing import Final

BAD_REQUEST: Final = 40000
BAD_STATEMENT: Final = 40001
DENIED: Final = 40301
"""ksqlDB's code for what the cluster does not allow."""
ASSERTION_FAILED: Final = 41700
REGISTRY_MISSING: Final = 42801
SERVER_ERROR: Final = 50000

SHOWN_CHARACTERS: Final = 1_000
"""Of a statement in an error: one of a megabyte helps nobody."""


SHOWN_OF_MESSAGE: Final = 2_000
"""A name of a megabyte that is wrong helps nobody either."""
_TAIL: Final = 500
"""What would work stands at the end."""


def shortened(message: str) -> str:
    if len(message) <= SHOWN_OF_MESSAGE:
        return message
    return f"{message[: SHOWN_OF_MESSAGE - _TAIL]} ... {message[-_TAIL:]}"


class SqlError(Exception):
    """A statement that cannot be run. `line` and `column` count from 1; 0 if no place is known."""

    def __init__(self, code: int, message: str, statement: str = "", line: int = 0, column: int = 0) -> None:
        message = shortened(message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.statement = statement
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = f"line {self.line}:{self.column}: " if self.line else ""
        return f"{place}{self.message}"

    def of(self, statement: str) -> "SqlError":
        """With the statement it is about, if it did not say one."""
        if not self.statement:
            cut = len(statement) > SHOWN_CHARACTERS
            self.statement = statement[:SHOWN_CHARACTERS] + " ..." if cut else statement
        return self
