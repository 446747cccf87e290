"""Judges of histories: pure, so that the simulator and real processes are held to the same rules.

`judge` runs every anomaly of Jepsen's Kafka workload over a history of operations; the other checks look at the bytes
of replicas and at what a cluster says of itself. Nothing here waits, reads files or asks the time.
"""

from ottla.testing.checkers.anomaly import Anomaly, Check, Promises
from ottla.testing.checkers.cluster_facts import (
    Leadership,
    OneLeaderPerEpoch,
    OneOwner,
    Ownership,
    Watermarks,
    WatermarksAdvance,
)
from ottla.testing.checkers.copies import ExactlyOnceCopy
from ottla.testing.checkers.evidence import Evidence
from ottla.testing.checkers.history import Action, Event, Kind, Operation, Poll, Send, from_json, operations, to_json
from ottla.testing.checkers.permissions import AllowedByCommitted, CommittedAcls, Granted, Question, allows
from ottla.testing.checkers.replicas import ReplicasIdentical
from ottla.testing.checkers.verdict import CHECKS, Verdict, judge

__all__ = [
    "CHECKS",
    "Action",
    "AllowedByCommitted",
    "Anomaly",
    "Check",
    "CommittedAcls",
    "Event",
    "Evidence",
    "ExactlyOnceCopy",
    "Granted",
    "Kind",
    "Leadership",
    "OneLeaderPerEpoch",
    "OneOwner",
    "Operation",
    "Ownership",
    "Poll",
    "Promises",
    "Question",
    "ReplicasIdentical",
    "Send",
    "Verdict",
    "Watermarks",
    "WatermarksAdvance",
    "allows",
    "from_json",
    "judge",
    "operations",
    "to_json",
]
