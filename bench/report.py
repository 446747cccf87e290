"""The table of a run as Markdown, with a verdict per target."""

from collections.abc import Mapping, Sequence
from statistics import median

from bench.ledger import Entry
from bench.measures import Measure

FORM = "ottla "
"""What kind of ottla was measured differs between workloads: it is told beside each."""
VERDICTS = {True: "reached", False: "**missed**", None: ""}
INTRODUCTION = """\
# Benchmarks

Written by `make bench`; not edited by hand. Both servers run on one machine, from the same `server.properties`, and
take turns at the same work (A B A B …), after warm-up rounds until their CPU has stopped falling. Each cell is a median
over the rounds, with the lowest and the highest in brackets. The ratio is ottla's median over Apache Kafka's. Server
CPU is what the kernel billed to the server's process, all threads together. 1 GB is 10⁹ bytes of record values, 1 MB is
10⁶ bytes. Each workload is one run of both servers; when it was, and how busy the machine already was, is said below.
"""


def published(ledger: Mapping[str, Entry], methods: Sequence[tuple[str, str]]) -> str:
    """The page: the last full run of every workload, in the order of `methods`."""
    known = [(name, ledger[name]) for name, _ in methods if name in ledger]
    measures = [measure for _, entry in known for measure in entry.measures]
    failures = [name for name, entry in known if not entry.finished]
    facts = dict.fromkeys(fact for _, entry in known for fact in entry.facts if not fact.startswith(FORM))
    parts = [INTRODUCTION, "".join(f"- {fact}\n" for fact in facts), summary(measures, failures), table(measures)]
    parts += [f"`{name}` did not finish, its targets are missed.\n" for name in failures]
    parts.append("## How each is measured\n")
    parts += [_method(name, text, ledger.get(name)) for name, text in methods]
    return "\n".join(parts)


def _method(name: str, text: str, entry: Entry | None) -> str:
    when = "Not measured yet."
    if entry is not None:
        form = "".join(f"{fact}, " for fact in entry.facts if fact.startswith(FORM))
        busy = f"{entry.busy:.0%} of the machine in use before it"
        when = f"{entry.day}, {entry.commit}, {form}{entry.rounds} rounds, {busy}."
    return f"**{name}.** {text.strip()} ({when})\n"


def summary(measures: Sequence[Measure], unfinished: Sequence[str]) -> str:
    judged = [measure for measure in measures if measure.reached is not None]
    missed = [measure for measure in judged if not measure.reached]
    line = f"{len(judged) - len(missed)} of {len(judged)} targets reached"
    if missed:
        line += "; missed: " + ", ".join(f"{measure.workload} ({measure.metric.title})" for measure in missed)
    if unfinished:
        line += "; not finished: " + ", ".join(unfinished)
    return line + ".\n"


def table(measures: Sequence[Measure], candidate: str = "ottla") -> str:
    rows = [
        f"| Workload | Measure | Apache Kafka | {candidate} | Ratio | Target | Verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    rows += [_row(measure) for measure in measures]
    return "\n".join(rows) + "\n"


def _row(measure: Measure) -> str:
    target = measure.metric.target
    unit = "" if target is None or target.of_ratio else f" {measure.metric.unit}"
    cells = [
        measure.workload,
        f"{measure.metric.title}, {measure.metric.unit}",
        samples(measure.kafka),
        samples(measure.ottla),
        "" if measure.ratio is None else f"{measure.ratio:.2f}",
        "" if target is None else f"{target}{unit}",
        VERDICTS[measure.reached],
    ]
    return "| " + " | ".join(cells) + " |"


def samples(values: Sequence[float]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return number(values[0])
    return f"{number(median(values))} ({number(min(values))}–{number(max(values))})"


def number(value: float) -> str:
    """Three digits that count."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
