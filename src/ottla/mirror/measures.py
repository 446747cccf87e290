"""MirrorMaker's metrics, of what was copied and of what was told of groups."""

from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from ottla.connect.spi import Copies, Row
from ottla.connect.spi.measures import METER, VALUE, Observed
from ottla.mirror.formats import Checkpoint

SOURCE: Final = "mirror.MirrorSourceConnector"
CHECKPOINT: Final = "mirror.MirrorCheckpointConnector"
Labels = tuple[tuple[str, str], ...]


def of_copies(flow: tuple[str, str], copies: Copies, read_ms: int, now_ms: int) -> list[Observed]:
    """`flow`: aliases of source and target. `copies`: what is left of them without their bytes. `read_ms`: when they
    were read, now: when the target had them."""
    count = len(copies.values)
    labels = (("source", flow[0]), ("target", flow[1]), ("topic", copies.topic), ("partition", str(copies.partition)))
    size = int(pc.sum(copies.values).as_py() or 0)
    stamps = copies.timestamps.to_numpy()
    first, last, total = int(stamps.min()), int(stamps.max()), int(stamps.sum())

    def since(name: str, at_ms: int) -> Observed:
        newest = float(at_ms - int(stamps[-1]))
        return Observed(SOURCE, name, VALUE, labels, at_ms * count - total, count, at_ms - last, at_ms - first, newest)

    return [
        Observed(SOURCE, "record", METER, labels, count),
        Observed(SOURCE, "byte", METER, labels, size),
        since("record-age-ms", read_ms),
        since("replication-latency-ms", now_ms),
    ]


def of_checkpoints(flow: tuple[str, str], rows: Sequence[Row], now_ms: int) -> list[Observed]:
    found = []
    for row in rows:
        assert isinstance(row.key, bytes) and isinstance(row.value, bytes) and row.timestamp is not None
        point = Checkpoint.read(row.key, row.value)
        labels: Labels = (
            ("source", flow[0]),
            ("target", flow[1]),
            ("group", point.group),
            ("topic", point.topic),
            ("partition", str(point.partition)),
        )
        late = float(now_ms - row.timestamp)
        found.append(Observed(CHECKPOINT, "checkpoint-latency-ms", VALUE, labels, late, 1, late, late, late))
    return found
