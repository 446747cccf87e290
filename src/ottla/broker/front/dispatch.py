"""Which handler answers which request: one row per API key, one file per row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ottla.broker.security.authorizer import Operation, Resource
from ottla.metrics.counts import RequestCounts
from ottla.protocol import messages
from ottla.protocol.frames import NO_FLEXIBLE

API_VERSIONS = 18

Permission = tuple[Operation, Resource] | None
"""What a request needs. None: it needs nothing (ApiVersions), as a listener must be able to greet anyone."""


@dataclass(frozen=True, slots=True)
class Route:
    key: int
    name: str
    min_version: int
    max_version: int
    first_flexible: int
    decoders: Any
    """By version: the message's own, unless the handler brings others."""
    handle: Callable[..., Any]
    needs: Permission
    streams_files: bool
    counts: RequestCounts


HANDLERS: dict[int, str] = {
    0: "k00_produce",
    1: "k01_fetch",
    2: "k02_list_offsets",
    3: "k03_metadata",
    8: "k08_offset_commit",
    9: "k09_offset_fetch",
    10: "k10_find_coordinator",
    11: "k11_join_group",
    12: "k12_heartbeat",
    13: "k13_leave_group",
    14: "k14_sync_group",
    15: "k15_describe_groups",
    16: "k16_list_groups",
    18: "k18_api_versions",
    19: "k19_create_topics",
    20: "k20_delete_topics",
    21: "k21_delete_records",
    22: "k22_init_producer_id",
    23: "k23_offset_for_leader_epoch",
    24: "k24_add_partitions_to_txn",
    25: "k25_add_offsets_to_txn",
    26: "k26_end_txn",
    27: "k27_write_txn_markers",
    28: "k28_txn_offset_commit",
    32: "k32_describe_configs",
    33: "k33_alter_configs",
    35: "k35_describe_log_dirs",
    37: "k37_create_partitions",
    42: "k42_delete_groups",
    43: "k43_elect_leaders",
    44: "k44_incremental_alter_configs",
    45: "k45_alter_partition_reassignments",
    46: "k46_list_partition_reassignments",
    47: "k47_offset_delete",
    55: "k55_describe_quorum",
    57: "k57_update_features",
    60: "k60_describe_cluster",
    61: "k61_describe_producers",
    64: "k64_unregister_broker",
    65: "k65_describe_transactions",
    66: "k66_list_transactions",
    68: "k68_consumer_group_heartbeat",
    69: "k69_consumer_group_describe",
    74: "k74_list_config_resources",
    75: "k75_describe_topic_partitions",
    80: "k80_add_raft_voter",
    81: "k81_remove_raft_voter",
}
"""The broker listener's keys. Shares and streams add theirs when they can be answered."""

CONTROLLER_HANDLERS: dict[int, str] = {
    1: "quorum_fetch",
    18: "k18_api_versions",
    19: "controlled",
    20: "controlled",
    33: "controlled",
    37: "controlled",
    43: "controlled",
    44: "controlled",
    45: "controlled",
    46: "controlled",
    52: "k52_vote",
    53: "k53_begin_quorum_epoch",
    54: "k54_end_quorum_epoch",
    55: "k55_describe_quorum",
    56: "k56_alter_partition",
    57: "controlled",
    58: "k58_envelope",
    59: "k59_fetch_snapshot",
    60: "k60_describe_cluster",
    62: "k62_broker_registration",
    63: "k63_broker_heartbeat",
    64: "controlled",
    67: "k67_allocate_producer_ids",
    70: "k70_controller_registration",
    73: "k73_assign_replicas_to_dirs",
    80: "k80_add_raft_voter",
    81: "k81_remove_raft_voter",
    82: "k82_update_raft_voter",
}
"""The controller listener's keys. What it decides itself goes straight to the active controller (`controlled`)."""


class Routes:
    """The routes of one listener. A handler's module is imported when its first request comes."""

    __slots__ = ("_handlers", "loaded")

    def __init__(self, handlers: Mapping[int, str] = HANDLERS) -> None:
        self._handlers = handlers
        self.loaded: dict[int, Route] = {}
        """Those asked for so far, by key: a session looks here first."""

    def get(self, key: int) -> Route | None:
        route = self.loaded.get(key)
        if route is None and key in self._handlers:
            route = self.loaded[key] = load_route(key, self._handlers[key])
        return route

    def served(self) -> list[tuple[int, int, int]]:
        """Key, lowest and highest version of every API here."""
        return [(key, messages.API[key].min_version, _highest(key)) for key in self._handlers]

    def api_versions_unsupported(self, services: Any) -> Any:
        route = self.get(API_VERSIONS)
        assert route is not None
        module = import_module("ottla.broker.handlers.k18_api_versions")
        return module.unsupported(self)


def _highest(key: int) -> int:
    # We speak as a 4.3 broker does: the codecs of ApiVersions 5 (4.4, KIP-1242) are there for clients of ours.
    return 4 if key == API_VERSIONS else messages.API[key].stable_max


def load_route(key: int, handler: str) -> Route:
    api = messages.API[key]
    tells_errors = "error_code" in messages.response_class(key).FIELDS
    module = import_module(f"ottla.broker.handlers.{handler}")
    return Route(
        key=key,
        name=api.name,
        min_version=api.min_version,
        max_version=_highest(key),
        first_flexible=NO_FLEXIBLE if api.first_flexible is None else api.first_flexible,
        decoders=getattr(module, "DECODERS", None) or messages.request_class(key).DECODERS,
        handle=module.handle,
        needs=module.NEEDS,
        streams_files=key == 1,
        counts=RequestCounts(api.min_version, _highest(key), has_error_code=tells_errors),
    )
