"""What a connector has observed of its own work, for its metrics: MirrorMaker's, for one."""

from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["meter", "value", "gauge"]
METER: Final[Kind] = "meter"
"""Something that adds up: `<name>-count` and `<name>-rate`."""
VALUE: Final[Kind] = "value"
"""Something that is so long or so old: `<name>`, and `-min`, `-max`, `-avg` of it."""
GAUGE: Final[Kind] = "gauge"
"""Something that is as it is now: `<name>`."""
OF_CONNECTOR: Final = "source.connector"
"""The group of metrics that a connector has for itself."""


class Observed(NamedTuple):
    """Of some records together; `total` is the sum of what was observed of each."""

    group: str
    """What stands behind kafka.connect in the metric's name of Java: mirror.MirrorSourceConnector."""
    name: str
    kind: Kind
    labels: tuple[tuple[str, str], ...]
    total: float
    times: int = 1
    least: float = 0.0
    most: float = 0.0
    last: float = 0.0


def gauge(connector: str, name: str, value: float) -> Observed:
    """`kafka_connect_source_connector_<name>{connector="..."}`."""
    return Observed(OF_CONNECTOR, name, GAUGE, (("connector", connector),), value, last=value)
