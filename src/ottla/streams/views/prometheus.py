"""Metrics as Prometheus reads them, named as the usual JMX exporter rules name those of Kafka Streams."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.streams.run.running import Metric

PREFIX: Final = "kafka_streams"
_OTHER: Final = re.compile(r"[^a-z0-9_]")


def metrics_text(application_id: str, metrics: "Iterable[Metric]") -> str:
    """kafka_streams_stream_thread_metrics_process_rate{client_id="word-count"} 12.5"""
    families: dict[str, list[str]] = {}
    helps: dict[str, str] = {}
    for metric in metrics:
        name = _name(f"{PREFIX}_{metric.group}_{metric.name}")
        tags = {"client-id": application_id, **metric.tags}
        labels = ",".join(f'{_name(tag)}="{_escaped(value)}"' for tag, value in tags.items())
        families.setdefault(name, []).append(f"{name}{{{labels}}} {_number(metric.value)}")
        helps.setdefault(name, metric.help)
    lines: list[str] = []
    for name, samples in families.items():
        if helps[name]:
            lines.append(f"# HELP {name} {helps[name]}")
        lines.append(f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}")
        lines += samples
    return "".join(f"{line}\n" for line in lines)


def _name(text: str) -> str:
    return _OTHER.sub("_", text.lower())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
