"""What a client is told when it cannot have what it asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any


@dataclass(slots=True)
class Problem(Exception):
    """Raised by whoever finds it; the text is for the client and says what to do."""

    status: int
    message: str
    code: int | None = None
    """The service's own number, such as the registry's 40401. None: the status says it all."""
    headers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What a program may want to read besides the text."""

    def __str__(self) -> str:
        return f"{self.status} {self.message}"


ProblemBody = Callable[[Problem], Any]
"""How a service words its errors: from a problem to the value that is sent as JSON."""


def plain_body(problem: Problem) -> Any:
    """RFC 9457, for services that follow nobody else's API."""
    return {
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.message,
        **({} if problem.code is None else {"code": problem.code}),
        **problem.facts,
    }


def confluent_body(problem: Problem) -> Any:
    """As Schema Registry and Connect word them."""
    return {
        "error_code": problem.status if problem.code is None else problem.code,
        "message": problem.message,
        **problem.facts,
    }
