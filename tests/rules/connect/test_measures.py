"""Metrics that connectors have of their own: counts for ever, rates and extremes of the last minute."""

import pyarrow as pa

from ottla.connect.measures import MOST, Measures, Sample
from ottla.connect.monitoring import own_measures
from ottla.connect.spi import METER, VALUE, Copies, Observed, Row, gauge
from ottla.mirror.formats import Checkpoint
from ottla.mirror.measures import of_checkpoints, of_copies

KIND = "mirror.MirrorSourceConnector"
LABELS = (("source", "us"), ("target", "eu"))


def meter(total: float) -> Observed:
    return Observed(KIND, "record", METER, LABELS, total)


def age(least: float, most: float, total: float, count: int, last: float) -> Observed:
    return Observed(KIND, "record-age-ms", VALUE, LABELS, total, count, least, most, last)


def told(measures: Measures, now_ms: int) -> dict[str, float]:
    return {name: value for _, name, _, value in measures.samples(now_ms)}


def test_a_meter_counts_for_ever_and_its_rate_is_of_the_last_minute() -> None:
    measures = Measures()
    measures.take([meter(300)], 0)
    assert told(measures, 10_000) == {"record-count": 300, "record-rate": 10}
    measures.take([meter(300)], 30_000)
    assert told(measures, 40_000) == {"record-count": 600, "record-rate": 15}
    assert told(measures, 200_000) == {"record-count": 600, "record-rate": 0}


def test_a_value_has_extremes_and_an_average_of_the_last_minute() -> None:
    measures = Measures()
    measures.take([age(1, 9, 10, 2, 9)], 0)
    measures.take([age(3, 3, 3, 1, 3)], 31_000)
    name = "record-age-ms"
    assert told(measures, 40_000) == {name: 3, f"{name}-min": 1, f"{name}-max": 9, f"{name}-avg": 13 / 3}
    assert told(measures, 65_000) == {name: 3, f"{name}-min": 3, f"{name}-max": 3, f"{name}-avg": 3}
    assert told(measures, 500_000) == {name: 3}


def test_a_gauge_is_as_it_was_last_and_stands_under_the_name_of_its_connector() -> None:
    measures = Measures()
    measures.take([gauge("shop", "slot-lag-bytes", 7)], 0)
    measures.take([gauge("shop", "slot-lag-bytes", 5)], 100)
    assert told(measures, 500_000) == {"slot-lag-bytes": 5}
    page = "".join(own_measures({"shop": {"measures": measures.samples(0)}}))
    assert 'kafka_connect_source_connector_slot_lag_bytes{connector="shop"} 5' in page


def test_series_are_bounded() -> None:
    measures = Measures()
    measures.take([meter(1)._replace(labels=(("partition", str(n)),)) for n in range(MOST + 5)], 0)
    assert len(measures.samples(0)) == 2 * MOST


def test_copies_are_told_as_mirror_maker_tells_them() -> None:
    nothing = pa.nulls(2, pa.binary())
    stamps, offsets = pa.array([1000, 1500], pa.int64()), pa.array([0, 1], pa.int64())
    copies = Copies("us.orders", 3, nothing, pa.array([b"abc", b"d"]), stamps, nothing, offsets).without_bytes()
    labels = (*LABELS, ("topic", "us.orders"), ("partition", "3"))
    assert of_copies(("us", "eu"), copies, 2000, 2100) == [
        Observed(KIND, "record", METER, labels, 2),
        Observed(KIND, "byte", METER, labels, 4),
        Observed(KIND, "record-age-ms", VALUE, labels, 1500, 2, 500, 1000, 500),
        Observed(KIND, "replication-latency-ms", VALUE, labels, 1700, 2, 600, 1100, 600),
    ]


def test_checkpoints_are_told_by_group_topic_and_partition() -> None:
    point = Checkpoint("app", "us.orders", 0, 7, 5, "")
    (found,) = of_checkpoints(("us", "eu"), [Row("t", point.value(), point.key(), timestamp=1000)], 1250)
    labels = (*LABELS, ("group", "app"), ("topic", "us.orders"), ("partition", "0"))
    assert (found.name, found.labels, found.last) == ("checkpoint-latency-ms", labels, 250)


def test_a_worker_serves_them_under_the_names_of_strimzis_rules() -> None:
    samples = [
        Sample(KIND, "record-count", LABELS, 7),
        Sample(KIND, "byte-rate", LABELS, 1.5),
    ]
    text = "".join(own_measures({"mirror": {"measures": samples}, "other": {}}))
    assert 'kafka_connect_mirror_mirrorsourceconnector_record_count{source="us",target="eu"} 7' in text
    assert "# TYPE kafka_connect_mirror_mirrorsourceconnector_record_count counter" in text
    assert 'kafka_connect_mirror_mirrorsourceconnector_byte_rate{source="us",target="eu"} 1.5' in text
