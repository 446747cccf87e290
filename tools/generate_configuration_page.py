"""Writes docs/CONFIGURATION.md from the property table. With --check it only says whether the page is up to date."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ottla.model import properties
from ottla.model.properties import REQUIRED, Property, Update, topic_schemas

PAGE = Path(__file__).parents[1] / "docs" / "CONFIGURATION.md"

INTRODUCTION = """\
# Configuration

<!-- Written by tools/generate_configuration_page.py from the property table; change the table, not this page. -->

`ottla start` needs no file. `ottla start server.properties` takes the file of an Apache Kafka 4.3 node as it is: names,
types, defaults and rules are Kafka's. A name that nobody knows is logged as not used, as Kafka does; one that is nearly
a setting is refused together with what was probably meant. Settings of listeners (`listener.name.<listener>.<setting>`)
and plugins are passed on, and settings of earlier Kafka releases are ignored with a warning.

**Change** says how a setting can be changed: *restart* in the file only, *broker* per broker while it runs, *cluster*
per broker or for all brokers at once (`ottla configs`). Where our default is not Kafka's, the row says why.
"""

UNBUILT = {
    "Tiered storage": "This version has none: what is set here is checked and has no effect.\n\n",
}
"""What is to be known of a whole section before its table is read."""

CHANGE = {Update.READ_ONLY: "restart", Update.PER_BROKER: "broker", Update.CLUSTER_WIDE: "cluster"}


def page() -> str:
    return INTRODUCTION + "".join(f"\n## {title}\n\n{text}" for title, text in _chapters())


def _chapters() -> Iterator[tuple[str, str]]:
    yield (
        "ottla's own settings",
        "Limits that Kafka leaves open, and what only ottla has.\n\n" + _table(properties.OWN.values()),
    )
    yield (
        "Topics",
        "Set when a topic is created or later. A setting left alone follows the broker's, in the order given.\n\n"
        + _table(properties.TOPIC.values(), "Follows"),
    )
    for title, entries in properties.SECTIONS.items():
        yield title, UNBUILT.get(title, "") + _table(entries)
    yield (
        "Authorizer",
        "Read by Kafka's authorizer from the same file; in force with `authorizer.class.name`.\n\n"
        + _table(properties.AUTHORIZER.values()),
    )
    yield (
        "Throttles of one broker",
        "These exist only while a broker runs: set them with `ottla configs`.\n\n"
        + _table(properties.DYNAMIC_ONLY.values()),
    )
    yield (
        "Groups",
        "Set per group. A setting left alone follows the broker's.\n\n" + _table(properties.GROUP.values(), "Follows"),
    )
    yield (
        "Client metrics",
        "Subscriptions to the metrics of clients (KIP-714). This version collects none: those that a log of Kafka's "
        "brings are shown and can be removed.\n\n" + _table(properties.CLIENT_METRICS.values(), None),
    )


def _table(entries: Iterable[Property], last: str | None = "Change") -> str:
    """`last` names the column that tells how a value comes about: Change, Follows or none."""
    titles = ["Name", "Type", "Default", "Allowed", *([last] if last else []), "Meaning"]
    rows = [titles, ["---"] * len(titles)]
    rows += [_row(entry, last) for entry in entries if not entry.internal or entry in topic_schemas.PROPERTIES]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(entry: Property, last: str | None) -> list[str]:
    cells = [f"`{entry.name}`", entry.type.name.lower(), _default(entry), _escaped(entry.allowed())]
    if last == "Change":
        cells.append(CHANGE[entry.update])
    elif last == "Follows":
        cells.append(", ".join(f"`{name}`" for name in entry.synonyms))
    differs = entry.differs
    why = f" *Kafka's default is {entry.render(differs.kafka_default)}: {differs.why}.*" if differs else ""
    return [*cells, _escaped(entry.doc + why)]


def _default(entry: Property) -> str:
    if entry.default is REQUIRED:
        return "*required*"
    text = entry.default_text
    if text is None:
        return "*unset*"
    return f"`{_escaped(text)}`" if text else "*empty*"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is out of date: run python {Path(__file__).name}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
