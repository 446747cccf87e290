"""Regular expressions from the network, in RE2's syntax: matching takes time linear in the text.

Python's own engine can be made to backtrack without end, so such a pattern never comes near it.
"""

from typing import Any, Final

_MEMORY_BYTES: Final = 1 << 20
"""What one compiled pattern may take: a bomb such as ((a{100}){100}){100} is refused."""


def compiled(pattern: str) -> Any:
    """For whether a text matches. Raises ValueError for what is no regular expression."""
    return _compiled(pattern, captures=False)


def capturing(pattern: str) -> Any:
    """For what its groups match, too. Raises as `compiled`."""
    return _compiled(pattern, captures=True)


def _compiled(pattern: str, *, captures: bool) -> Any:
    import re2  # noqa: PLC0415  a native library, loaded when the first pattern comes

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    options.never_capture = not captures
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error
