"""Who gets which partition: one module per assignor."""

from ottla.coordinator.group.consumer.assignors import range as range_assignor
from ottla.coordinator.group.consumer.assignors import uniform
from ottla.coordinator.group.consumer.assignors.spec import Assignor, MemberSpec, Partitions

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}
"""Those that group.consumer.assignors may name."""

__all__ = ["ASSIGNORS", "Assignor", "MemberSpec", "Partitions"]
