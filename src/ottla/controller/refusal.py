"""A protocol outcome that is not success: a value, not an exception, because a request may have many of them."""

from typing import NamedTuple

from ottla.model.errors import Errors


class Refusal(NamedTuple):
    error: Errors
    message: str
