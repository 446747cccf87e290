"""A store as a pandas DataFrame, for who looks at it in a notebook."""
# ruff: noqa: PLC0415  pandas comes with the extra `streams`, and takes long to import

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.streams.views.lookups import Found


def rows_of(entries: "Iterable[Found]") -> list[dict[str, Any]]:
    """A struct's fields are columns of their own, any other value is the column `value`."""
    rows: list[dict[str, Any]] = []
    for key, value, timestamp, window in entries:
        fields = value if isinstance(value, dict) else {"value": value}
        row = {"key": key, **fields, "timestamp": timestamp}
        rows.append(row if window is None else {**row, "window_start": window.start, "window_end": window.end})
    return rows


def frame_of(entries: "Iterable[Found]") -> Any:
    """A DataFrame. Times as UTC."""
    import pandas as pd  # type: ignore[import-untyped]

    frame = pd.DataFrame(rows_of(entries))
    for name in ("timestamp", "window_start", "window_end"):
        if name in frame:
            frame[name] = pd.to_datetime(frame[name], unit="ms", utc=True)
    return frame
