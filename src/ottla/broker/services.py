"""What handlers are given: the collaborators of this node's broker, made by the composition root."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.coordination.coordinators import Coordinators
from ottla.broker.coordination.producer_ids import ProducerIds
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.quotas.mutations import held, permits_for
from ottla.broker.replicas.fetch_sessions import FetchSessions
from ottla.broker.replicas.leader_news import LeaderNews
from ottla.broker.replicas.moves import Moves
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.replicas.throttles import ReplicationThrottle
from ottla.broker.security.authorizer import Authorizer
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.model.ids import BrokerId
from ottla.model.ports import Clock
from ottla.protocol.codec import Request, ResponseT_co
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.forwarding import Sender

if TYPE_CHECKING:  # a session knows its services; of the others, messages are loaded with the first group
    from ottla.broker.coordination.markers import LocalMarkers
    from ottla.broker.coordination.transactions import Transactions
    from ottla.broker.coordination.verification import Verifier
    from ottla.broker.front.client import Client
    from ottla.broker.validation import Validation
    from ottla.coordinator.group.shard import GroupShard


class Limits(NamedTuple):
    """The named bounds of the request path. Each is a setting; the node fills them in."""

    max_in_flight: int
    max_unsent_bytes: int
    """Replies a client has not taken yet: above this its next requests wait in its own socket."""
    fetch_max_bytes: int
    partitions_per_response: int


def sender(client: "Client") -> Sender:
    return Sender(client.principal, client.host, client.by_token)


class ControllerServices(NamedTuple):
    """What handlers on a controller's listener are given."""

    node_id: int
    limits: Limits
    clock: Clock
    control_plane: ControlPlane
    authorizer: Authorizer
    quotas: ClientQuotas

    async def decide(
        self, request: Request[ResponseT_co], client: "Client", *, client_id: str = "", version: int = 0
    ) -> ResponseT_co:
        """The answer of this node, if it is the active controller; else that it is not. What creates or deletes
        partitions says by which client id and in which version it came (KIP-599)."""
        now = self.clock.monotonic()
        permits = permits_for(self.quotas, request.API_KEY, version, client.principal, client_id, now)
        return held(await self.control_plane.answer_here(request, sender(client), permits), permits)


class Coordination(NamedTuple):
    """Of groups and transactions, as far as this node keeps them."""

    groups: "Coordinators[GroupShard]"
    transactions: "Transactions"
    producer_ids: ProducerIds
    markers: "LocalMarkers"
    verifier: "Verifier"


class Services(NamedTuple):
    configs: Configs
    limits: Limits
    clock: Clock
    control_plane: ControlPlane
    replicas: Replicas
    moves: Moves
    waiting: WaitingRequests
    fetch_sessions: FetchSessions
    authorizer: Authorizer
    quotas: ClientQuotas
    new_fetch_session_id: Callable[[], int]
    coordination: Coordination
    throttle: ReplicationThrottle
    """Of what followers out of sync are sent."""
    leader_news: LeaderNews
    validation: "Validation | None" = None
    """Of records by their schemas. None: no topic is validated here, whatever it asks for."""

    @property
    def broker_id(self) -> BrokerId:
        return self.replicas.broker_id

    @property
    def node_id(self) -> int:
        return self.broker_id

    async def decide(
        self, request: Request[ResponseT_co], client: "Client", *, client_id: str = "", version: int | None = None
    ) -> ResponseT_co:
        """The answer of the active controller, or of the quorum's leader, wherever that is. If it is elsewhere it asks
        for permission again, in the name of the client. What creates or deletes partitions says by which client id and
        in which version it came (KIP-599)."""
        now = self.clock.monotonic()
        permits = permits_for(self.quotas, request.API_KEY, version or 0, client.principal, client_id, now)
        asking = sender(client)._replace(client_id=client_id, version=version)
        return held(await self.control_plane.submit(request, on_behalf_of=asking, permits=permits), permits)
