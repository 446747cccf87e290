"""Metrics as Prometheus reads them, named as the usual JMX exporter rules name those of Kafka Streams."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.metrics.text import COUNTER, GAUGE, Family, Sample, labelled, some

if TYPE_CHECKING:
    from ottla.streams.run.running import Metric

PREFIX: Final = "kafka_streams"
_OTHER: Final = re.compile(r"[^a-z0-9_]")


def metrics_text(application_id: str, metrics: "Iterable[Metric]") -> str:
    """kafka_streams_stream_thread_metrics_process_rate{client_id="word-count"} 12.5"""
    families: dict[str, tuple[Family, list[Sample]]] = {}
    for metric in metrics:
        name = _name(f"{PREFIX}_{metric.group}_{metric.name}")
        kind = COUNTER if name.endswith("_total") else GAUGE
        _, samples = families.setdefault(name, (Family(name, kind, metric.help), []))
        tags = {"client-id": application_id, **metric.tags}
        samples.append((labelled((_name(tag), value) for tag, value in tags.items()), metric.value))
    return "".join(some(family, samples) for family, samples in families.values())


def _name(text: str) -> str:
    return _OTHER.sub("_", text.lower())
