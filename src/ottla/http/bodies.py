"""JSON, in and out. Foreign text is read into declared types, within limits of size and depth."""

from typing import Any

import msgspec

from ottla.http.problems import Problem


def read(body: bytes, kind: Any, *, empty_status: int = 400) -> Any:
    """Raises Problem 400 with what does not fit and where; `empty_status` where nothing was sent."""
    if kind is bytes:
        return body
    if not body:
        raise Problem(empty_status, "The request has no body; JSON is expected.")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Problem(400, f"The body does not fit: {error}") from None
    except msgspec.DecodeError as error:
        raise Problem(400, f"The body is not JSON: {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise Problem(400, "The body is not JSON that can be read: nested too deeply, or not UTF-8.") from None


def written(value: Any) -> bytes:
    return value if isinstance(value, bytes) else msgspec.json.encode(value)
