"""The controller: routes each command to its decider and replays what was appended.

Its image runs ahead of the committed one: a command sees everything that was appended before it, committed or not. If
an append fails the image is untouched; if leadership is lost the whole machine is thrown away.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.controller import (
    acls,
    brokers,
    configs,
    directories,
    elections,
    features,
    isr,
    producer_ids,
    quotas,
    reassignment,
    registration,
    scram,
    tokens,
    topics,
)
from ottla.controller.chores import Chore
from ottla.controller.decision import Decision
from ottla.controller.effective import UNCLEAN_ELECTION
from ottla.controller.permits import ANY, Allowance, Permits
from ottla.controller.sessions import Sessions
from ottla.controller.watchlist import Watchlist
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import BrokerRegistration, MetadataImage
from ottla.model.ids import Millis, Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.apis import Decider, decided_by
from ottla.protocol.codec import MetadataRecord, Request, ResponseT_co

LONG_AGO: Final = Millis(0)


class CommandContext(NamedTuple):
    """What a decision needs besides the command: time, ids and offsets are given, never fetched."""

    now: Millis
    next_offset: int
    kraft_version: int = 0
    fresh_ids: Sequence[Uuid] = ()
    wall: Millis = LONG_AGO
    """The time that delegation tokens end by, in milliseconds since 1970."""
    requester: str = ""
    """The principal that asks, such as User:alice; empty for a node that asks for itself."""
    permits: Permits = ANY
    """Of who asks."""

    @property
    def allowance(self) -> Allowance:
        return Allowance(self.permits, self.now)


class Fenced(NamedTuple):
    """An effect for whoever keeps the node's log: a broker was fenced that had not asked for it."""

    broker_id: int
    reason: str

    def __str__(self) -> str:
        return f"broker {self.broker_id} is fenced: {self.reason}"


class Controller:
    __slots__ = (
        "_acls",
        "_balancing",
        "_colliding",
        "_token_sweep",
        "_tokens",
        "_unclean_elections",
        "_watchlist",
        "image",
        "sessions",
        "settings",
    )

    def __init__(self, image: MetadataImage, settings: Settings) -> None:
        self.image = image
        self.settings = settings
        self.sessions = Sessions.of(settings)
        self._watchlist = Watchlist(image)
        self._acls = acls.AclBook(image)
        self._balancing = Chore(1000 * settings.get_int("leader.imbalance.check.interval.seconds"))
        self._unclean_elections = Chore(settings.get_int("unclean.leader.election.interval.ms"))
        self._token_sweep = Chore(settings.get_int("delegation.token.expiry.check.interval.ms"))
        self._tokens = tokens.Tokens(settings)
        self._colliding: dict[str, list[str]] = {}
        for name in image.topics:
            self._note_name(name)

    def activated(self, now: Millis, suspects: Container[int] | None = None) -> None:
        """This node leads the quorum from now on: what it knows of other brokers' health is worth nothing.

        `suspects` are the brokers that are probably dead, most likely the one that led before; see `Sessions.begin`.
        """
        self.sessions.begin(self.image.brokers.values(), now, suspects)
        self._balancing.begin(now)
        self._unclean_elections.begin(now)
        self._token_sweep.begin(now)

    def connected(self, broker_id: int, broker_epoch: int, now: Millis, connection: object = None) -> None:
        """A heartbeat came over this connection."""
        if not brokers.stale_epoch(self.image, broker_id, broker_epoch):
            self.sessions.connected(broker_id, broker_epoch, now, connection)

    def disconnected(self, broker_id: int, broker_epoch: int, now: Millis, connection: object = None) -> None:
        """The connection is gone. Ask for `next_tick` again: the grace has begun."""
        self.sessions.disconnected(broker_id, broker_epoch, now, connection)

    def missing(self) -> list[BrokerRegistration]:
        """Brokers whose connection broke and who may be dead: worth asking after."""
        return list(self.sessions.missing(self.image.brokers.values()))

    def answered(self, broker_id: int, broker_epoch: int, now: Millis) -> None:
        """Asked after, it was there: it will find this controller again."""
        self.sessions.answered(broker_id, broker_epoch, now)

    def dead(self, broker_id: int, broker_epoch: int, now: Millis) -> None:
        """Nobody listens at its address any more. Ask for `next_tick` again: it is now."""
        self.sessions.dead(broker_id, broker_epoch, now)

    def decide(self, command: Request[ResponseT_co], context: CommandContext) -> Decision[ResponseT_co]:
        """Raises KeyError for a command that is none of the controller's."""
        return _DECIDERS[command.API_KEY](self, command, context)

    def tick(self, now: Millis, wall: Millis = LONG_AGO) -> Decision[None]:
        """What is due: one thing at a time, so that each sees the effect of the one before. Ask again until empty."""
        for silent in self.sessions.silent(self.image.brokers.values(), now):
            records = brokers.fence(self.image, self.settings, silent.broker_id)
            return Decision(None, tuple(records), (Fenced(silent.broker_id, silent.reason),))
        if self._watchlist.leaderless and self._unclean_elections.is_due(now):
            return self._chore(self._unclean_elections, self._elect_uncleanly(), now)
        if self._may_balance and self._balancing.is_due(now):
            return self._chore(self._balancing, self._balance(), now)
        if self.image.delegation_tokens and self._token_sweep.is_due(now):
            expired = tokens.expired(self.image, wall)
            self._token_sweep.done(now, more=len(expired) >= tokens.MOST_AT_ONCE)
            return Decision(None, tuple(expired))
        return Decision(None)

    def next_tick(self, now: Millis) -> Millis | None:
        """When `tick` will have something to do, unless something happens before; None if nothing is in sight."""
        times = [self.sessions.next_deadline(self.image.brokers.values(), now)]
        if self._watchlist.leaderless:
            times.append(self._unclean_elections.due(now))
        if self._may_balance:
            times.append(self._balancing.due(now))
        if self.image.delegation_tokens:
            times.append(self._token_sweep.due(now))
        return min((at for at in times if at is not None), default=None)

    @property
    def _may_balance(self) -> bool:
        return bool(self._watchlist.imbalanced) and self.settings.get_bool("auto.leader.rebalance.enable")

    def _balance(self) -> list[MetadataRecord]:
        return elections.balance(self.image, self.settings, self._watchlist.imbalanced)

    def _elect_uncleanly(self) -> list[MetadataRecord]:
        return elections.elect_uncleanly(self.image, self.settings, self._watchlist.leaderless)

    def _chore(self, chore: Chore, records: list[MetadataRecord], now: Millis) -> Decision[None]:
        chore.done(now, more=len(records) >= elections.MAX_ELECTIONS_AT_ONCE)
        return Decision(None, tuple(records))

    def replay(
        self, records: Sequence[MetadataRecord], *, base_offset: int, epoch: int, timestamp: int
    ) -> MetadataDelta:
        """Takes records that are in the log now; the returned delta leads from the former image to the present one."""
        before = self.image
        delta = MetadataDelta(before)
        for offset, record in enumerate(records, base_offset):
            delta.replay(record)
            if isinstance(record, messages.RegisterBrokerRecord):
                self.sessions.registered(record.broker_id, offset)
            elif isinstance(record, messages.ConfigRecord) and record.name == UNCLEAN_ELECTION:
                self._unclean_elections.hurry()
        self.image = delta.apply(base_offset + len(records) - 1, epoch, timestamp)
        self._watchlist.follow(delta)
        self._acls.follow(delta)
        for topic in delta.deleted_topics.values():
            self._forget_name(topic.name)
        for name in delta.created_topics:
            self._note_name(name)
        for broker_id, broker in delta.changed_brokers.items():
            if broker is None:
                self.sessions.forget(broker_id)
        return delta

    def _note_name(self, name: str) -> None:
        unified = topics.unified_name(name)
        if unified is not None:
            self._colliding.setdefault(unified, []).append(name)

    def _forget_name(self, name: str) -> None:
        unified = topics.unified_name(name)
        if unified is not None:
            self._colliding[unified].remove(name)
            if not self._colliding[unified]:
                del self._colliding[unified]

    # One method for each command, found by the name that its row in `protocol.apis` has

    def create_topics(
        self, command: "messages.CreateTopicsRequest", context: CommandContext
    ) -> "Decision[messages.CreateTopicsResponse]":
        new = topics.NewTopics(command, context.fresh_ids, context.allowance)
        return topics.create_topics(self.image, self.settings, self._colliding, new)

    def delete_topics(
        self, command: "messages.DeleteTopicsRequest", context: CommandContext
    ) -> "Decision[messages.DeleteTopicsResponse]":
        return topics.delete_topics(self.image, self.settings, command, context.allowance)

    def create_partitions(
        self, command: "messages.CreatePartitionsRequest", context: CommandContext
    ) -> "Decision[messages.CreatePartitionsResponse]":
        return topics.create_partitions(self.image, command, context.allowance)

    def alter_client_quotas(
        self, command: "messages.AlterClientQuotasRequest", context: CommandContext
    ) -> "Decision[messages.AlterClientQuotasResponse]":
        return quotas.alter_client_quotas(self.image, command)

    def create_acls(
        self, command: "messages.CreateAclsRequest", context: CommandContext
    ) -> "Decision[messages.CreateAclsResponse]":
        return acls.create_acls(self._acls, command, context.fresh_ids)

    def delete_acls(
        self, command: "messages.DeleteAclsRequest", context: CommandContext
    ) -> "Decision[messages.DeleteAclsResponse]":
        return acls.delete_acls(self._acls, command)

    def alter_configs(
        self, command: "messages.AlterConfigsRequest", context: CommandContext
    ) -> "Decision[messages.AlterConfigsResponse]":
        return configs.alter_configs(self.image, self.settings, command)

    def incremental_alter_configs(
        self, command: "messages.IncrementalAlterConfigsRequest", context: CommandContext
    ) -> "Decision[messages.IncrementalAlterConfigsResponse]":
        return configs.incremental_alter_configs(self.image, self.settings, command)

    def update_features(
        self, command: "messages.UpdateFeaturesRequest", context: CommandContext
    ) -> "Decision[messages.UpdateFeaturesResponse]":
        return features.update_features(
            self.image,
            self.settings,
            command,
            kraft_version=context.kraft_version,
        )

    def allocate_producer_ids(
        self, command: "messages.AllocateProducerIdsRequest", context: CommandContext
    ) -> "Decision[messages.AllocateProducerIdsResponse]":
        return producer_ids.allocate(self.image, command)

    def broker_registration(
        self, command: "messages.BrokerRegistrationRequest", context: CommandContext
    ) -> "Decision[messages.BrokerRegistrationResponse]":
        return registration.register(
            self.image,
            self.settings,
            self.sessions,
            command,
            next_offset=context.next_offset,
            now=context.now,
            kraft_version=context.kraft_version,
        )

    def broker_heartbeat(
        self, command: "messages.BrokerHeartbeatRequest", context: CommandContext
    ) -> "Decision[messages.BrokerHeartbeatResponse]":
        return brokers.heartbeat(
            self.image, self.settings, self.sessions, command, next_offset=context.next_offset, now=context.now
        )

    def unregister_broker(
        self, command: "messages.UnregisterBrokerRequest", context: CommandContext
    ) -> "Decision[messages.UnregisterBrokerResponse]":
        return brokers.unregister(self.image, self.settings, command)

    def controller_registration(
        self, command: "messages.ControllerRegistrationRequest", context: CommandContext
    ) -> "Decision[messages.ControllerRegistrationResponse]":
        return registration.register_controller(self.image, command)

    def alter_partition(
        self, command: "messages.AlterPartitionRequest", context: CommandContext
    ) -> "Decision[messages.AlterPartitionResponse]":
        return isr.alter_partition(self.image, self.settings, command)

    def elect_leaders(
        self, command: "messages.ElectLeadersRequest", context: CommandContext
    ) -> "Decision[messages.ElectLeadersResponse]":
        return elections.elect_leaders(self.image, self.settings, command, max_records=topics.MAX_RECORDS_PER_REQUEST)

    def alter_partition_reassignments(
        self, command: "messages.AlterPartitionReassignmentsRequest", context: CommandContext
    ) -> "Decision[messages.AlterPartitionReassignmentsResponse]":
        return reassignment.alter_reassignments(
            self.image, self.settings, command, max_records=topics.MAX_RECORDS_PER_REQUEST
        )

    def list_partition_reassignments(
        self, command: "messages.ListPartitionReassignmentsRequest", context: CommandContext
    ) -> "Decision[messages.ListPartitionReassignmentsResponse]":
        return reassignment.list_reassignments(self.image, self._watchlist.reassigning, command)

    def alter_user_scram_credentials(
        self, command: "messages.AlterUserScramCredentialsRequest", context: CommandContext
    ) -> "Decision[messages.AlterUserScramCredentialsResponse]":
        return scram.alter_credentials(self.image, command)

    def create_delegation_token(
        self, command: "messages.CreateDelegationTokenRequest", context: CommandContext
    ) -> "Decision[messages.CreateDelegationTokenResponse]":
        (fresh_id,) = context.fresh_ids
        return self._tokens.create(self.image, command, context.requester, fresh_id, context.wall)

    def renew_delegation_token(
        self, command: "messages.RenewDelegationTokenRequest", context: CommandContext
    ) -> "Decision[messages.RenewDelegationTokenResponse]":
        return self._tokens.renew(self.image, command, context.requester, context.wall)

    def expire_delegation_token(
        self, command: "messages.ExpireDelegationTokenRequest", context: CommandContext
    ) -> "Decision[messages.ExpireDelegationTokenResponse]":
        return self._tokens.expire(self.image, command, context.requester, context.wall)

    def assign_replicas_to_dirs(
        self, command: "messages.AssignReplicasToDirsRequest", context: CommandContext
    ) -> "Decision[messages.AssignReplicasToDirsResponse]":
        return directories.assign_replicas(self.image, self.settings, command)


_DECIDERS: Final[Mapping[int, Callable[..., Decision[Any]]]] = {
    api.key: getattr(Controller, api.function) for api in decided_by(Decider.CONTROLLER)
}
"""By key, so that starting a node does not load the codec of every command."""
