"""What there is to look at, and what has to be remembered from one look to the next."""

from collections.abc import Callable
from time import thread_time_ns
from typing import Final, NamedTuple

from ottla.broker.front.server import Server
from ottla.broker.housekeeping.cleaning import Cleaning
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.services import Services
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.metrics.counts import QuorumCounts
from ottla.metrics.window import Passed, Window
from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.net.peer import Peers
from ottla.runtime.control_plane import ControlPlane


class Elections:
    """Counted from what is committed: a new leader that was not in sync may have lost records."""

    __slots__ = ("unclean",)

    def __init__(self) -> None:
        self.unclean = 0

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for topic_id, partitions in delta.changed_partitions.items():
            before = delta.base.topics_by_id.get(topic_id)
            if before is None:
                continue
            for index, placed in partitions.items():
                was = before.partitions.get(index)
                if was is not None and 0 <= placed.leader != was.leader:
                    # An eligible leader replica (KIP-966) has all that was committed, though it is not in sync.
                    self.unclean += placed.leader not in (*was.isr, *was.elr)


class BrokerView(NamedTuple):
    services: Services
    cleaning: Cleaning


class Watched:
    __slots__ = ("_broker", "clock", "control_plane", "elections", "peers", "quotas", "server", "settings", "windows")

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        control_plane: ControlPlane,
        server: Server,
        peers: Peers,
        quotas: ClientQuotas,
        broker: Callable[[], BrokerView | None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.control_plane = control_plane
        self.server = server
        self.peers = peers
        self.quotas = quotas
        self._broker = broker
        self.elections = Elections()
        self.windows: dict[str, Window] = {}

    @property
    def broker(self) -> BrokerView | None:
        """None before its logs are loaded, and on a node that is a controller only."""
        return self._broker()

    @property
    def node_id(self) -> int:
        return self.settings.node_id

    @property
    def max_partitions(self) -> int:
        """Those that have series of their own; the others are in the sums."""
        return self.settings.get_int("ottla.metrics.max.partitions")

    def of_late(self, name: str, totals: list[int]) -> Passed:
        """What has happened to some counters since an earlier look."""
        now = self.clock.monotonic()
        window = self.windows.get(name)
        if window is None:  # not counted before this node was watched: from nothing
            window = self.windows[name] = Window(now, [0] * len(totals))
        return window.look(now, totals)

    def begin(self) -> None:
        """What goes on all the time counts from here."""
        self.windows[LOOP] = Window(self.clock.monotonic(), [thread_time_ns()])
        self.windows[QUORUM] = Window(self.clock.monotonic(), quorum_totals(self.control_plane.raft.counts))
        self.control_plane.subscribe(self.elections.on_metadata)


LOOP: Final = "loop"
QUORUM: Final = "quorum"


def quorum_totals(counts: QuorumCounts) -> list[int]:
    return [counts.appended, counts.fetched, counts.commit_ms, counts.commits]
