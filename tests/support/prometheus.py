"""Reads Prometheus' text format, as strictly as the tests need it."""

import re
from typing import Final

_SAMPLE: Final = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')

Labels = tuple[tuple[str, str], ...]


class Samples:
    def __init__(self) -> None:
        self._by_name: dict[str, dict[Labels, float]] = {}

    def add(self, name: str, labels: Labels, value: float) -> None:
        samples = self._by_name.setdefault(name, {})
        assert labels not in samples, f"{name}{dict(labels)} is told twice"
        samples[labels] = value

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def found(self, name: str, **labels: str) -> dict[Labels, float]:
        return {
            told: value
            for told, value in self._by_name.get(name, {}).items()
            if all(dict(told).get(each) == wanted for each, wanted in labels.items())
        }

    def total(self, name: str, **labels: str) -> float:
        return sum(self.found(name, **labels).values())

    def labels(self, name: str, label: str) -> list[str]:
        return [dict(told)[label] for told in self._by_name.get(name, {})]


def parsed(text: str) -> Samples:
    found = Samples()
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line)
        assert match is not None, line
        found.add(match[1], tuple(_LABEL.findall(match[2] or "")), float(match[3]))
    return found
