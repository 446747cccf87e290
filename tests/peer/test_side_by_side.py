"""The same requests to ottla and to Apache Kafka, started from the same file: the answers are the same.

What may differ stands in DIFFERENCES, each with its reason. Texts of errors and documentation are compared only as
"there is one"; names, ids, ports and times are replaced before (see tests/support/conversation.py).
"""

import re
import secrets
from collections.abc import Iterator

import pytest

from tests.support.comparing import differences
from tests.support.conversation import CONVERSATIONS, Note, hold
from tests.support.group_conversations import GROUP_CONVERSATIONS
from tests.support.nodes import ApacheKafka, Node, Ottla
from tests.support.quota_conversations import QUOTA_CONVERSATIONS
from tests.support.transaction_conversations import TRANSACTION_CONVERSATIONS

pytestmark = pytest.mark.jvm

LATER = (
    "groups, transactions, shares, streams, ACLs, quotas and the other APIs are advertised when they can be answered"
)
TELEMETRY = "subscriptions to clients' metrics (KIP-714) are refused until they can be served"
MORE_TEXT = "where Kafka sends an error without a word, ottla adds what was wrong"
QUIRK = "Kafka puts the text NONE beside error 0"
NOBODYS = "a transactional batch without a producer: nobody could ever end its transaction, so it is refused"
REPEATED = "Kafka tells a repeated batch's own time as if the broker had set it"
OWN = "a setting that only ottla has"
LIMIT = "ottla is bounded out of the box; Kafka's default is no bound, or a larger one"

DIFFERENCES: dict[tuple[str, str], str] = {
    # (start of the step's label, pattern of the place in the answer): reason
    ("greeting", r"\.api_keys\.api_key=\d+$"): LATER,
    ("greeting", r"_features\.name=(share|streams)\.version$"): LATER,
    ("change: client metrics", r"=Tm\.error_(code|message)$"): TELEMETRY,
    ("describe: set ones", r"=Tm\.configs\."): TELEMETRY,
    ("resources", r"\.resource_name=Tm$"): TELEMETRY,
    ("grow: one there, one not", r"=Tnever\.error_message$"): MORE_TEXT,
    ("produce: broken", r"\.error_message$"): MORE_TEXT,
    ("find: share without a proper key", r"\.error_message$"): MORE_TEXT,
    ("sequence: ", r"\.error_message$"): MORE_TEXT,
    ("in a transaction: ", r"\.error_message$"): MORE_TEXT,
    ("sequence: the same again", r"\.log_append_time_ms$"): REPEATED,
    ("in a transaction: the same again", r"\.log_append_time_ms$"): REPEATED,
    ("in a transaction: no producer", r"\.index=1\."): NOBODYS,
    ("end: ended, commit", r"\.error_code$"): "KAFKA-20785: fixed in Kafka after 4.3.1",
    ("bomb: ", r""): "a pattern that takes more than 1 MiB is refused",
    ("features", r"\.error_message$"): QUIRK,
    ("find: group", r"\.error_message$"): QUIRK,
    (
        "describe: a broker, all of it",
        r"\.name=((ottla|confluent|http)\.[a-z.]+|cluster\.id|(registry|connect|sql)\.listeners|sql\.state\.dir)$",
    ): OWN,
    ("describe: a broker, all of it", r"\.name=max\.connections(\.per\.ip)?\..*value$"): LIMIT,
    ("describe: a broker, all of it", r"\.name=queued\.max\.request\.bytes\..*value$"): LIMIT,
    ("describe: a broker, all of it", r"\.name=socket\.request\.max\.bytes\..*value$"): LIMIT,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    base = tmp_path_factory.mktemp("side-by-side")
    with ApacheKafka(base / "kafka") as kafka, Ottla(base / "ottla") as ottla:
        yield kafka, ottla


def unexplained(expected: list[Note], seen: list[Note]) -> list[str]:
    """A line for each kind of difference that DIFFERENCES has no reason for, and for each reason without difference."""
    assert [label for label, _ in expected] == [label for label, _ in seen]
    found: dict[tuple[str, str, str, str], list[str]] = {}
    unused = {(s, p) for s, p in DIFFERENCES if any(label.startswith(s) for label, _ in expected)}
    for (label, theirs), (_, ours) in zip(expected, seen, strict=True):
        step, version = label.rsplit(" ", 1)
        for place, expected_value, seen_value in differences(theirs, ours):
            reasons = {(s, p) for s, p in DIFFERENCES if step.startswith(s) and re.search(p, place)}
            unused -= reasons
            if not reasons:
                found.setdefault((step, place, repr(expected_value), repr(seen_value)), []).append(version)
    stale = [f"{step} {place}: there is no such difference any more" for step, place in sorted(unused)]
    return stale + [
        f"{step} ({' '.join(versions)}) {place}: Kafka says {theirs[:200]}, ottla {ours[:200]}"
        for (step, place, theirs, ours), versions in found.items()
    ]


ALL = CONVERSATIONS | GROUP_CONVERSATIONS | TRANSACTION_CONVERSATIONS | QUOTA_CONVERSATIONS


def test_both_answer_alike(both: tuple[Node, Node]) -> None:
    """One after another in this order: what one conversation leaves behind in Apache Kafka changes what it answers to a
    later one."""
    found = []
    for name, conversation in ALL.items():
        prefix = f"sbs{secrets.token_hex(3)}"
        expected, seen = (hold(node.bootstrap, conversation, prefix) for node in both)
        found += [f"{name}: {difference}" for difference in unexplained(expected, seen)]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)
