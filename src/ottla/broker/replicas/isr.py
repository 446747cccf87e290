"""Carries proposals for the in-sync replicas to the controller, and its answers back. One request at a time."""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.replication.leader import IsrChange
from ottla.runtime.errand import Errand
from ottla.runtime.timers import Repeating
from ottla.storage.fs import StorageError

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.1
_TIMEOUT_MS: Final = 5_000
"""A request lost on a broken network holds up all that come after it: no longer than this."""
_INELIGIBLE_SECONDS: Final = 0.2
"""Whom the controller does not want in sync now would be proposed again with its next fetch."""

Submit = Callable[["messages.AlterPartitionRequest", int], Awaitable["messages.AlterPartitionResponse"]]


class IsrChanges:
    """Hears `Events.isr_change_wanted`, and looks for followers that lag."""

    __slots__ = ("_broker_epoch", "_configs", "_errand", "_loop", "_replicas", "_submit", "_timer", "_wanted")

    def __init__(
        self,
        loop: AbstractEventLoop,
        replicas: Replicas,
        configs: Configs,
        submit: Submit,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._loop = loop
        self._replicas = replicas
        self._configs = configs
        self._submit = submit
        self._broker_epoch = broker_epoch
        self._wanted: dict[Partition, IsrChange] = {}
        self._errand = Errand(loop, "changes of in-sync replicas", self._send_all, lambda: bool(self._wanted))
        self._timer: Repeating | None = None

    def start(self) -> None:
        # Half the lag: a follower that stands still is out after one and a half times the lag at most, as in Kafka.
        interval_ms = max(1, self._configs.settings.get_int("replica.lag.time.max.ms") // 2)
        self._timer = Repeating(interval_ms, self._replicas.shrink_isrs)
        self._timer.start()

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        await self._errand.stop()

    def want(self, partition: Partition) -> None:
        if partition.leader is not None and partition.leader.pending is not None:
            self._wanted[partition] = partition.leader.pending
            self._errand.work()

    async def _send_all(self) -> None:
        while self._wanted:
            sent, self._wanted = self._wanted, {}
            sent = {partition: change for partition, change in sent.items() if _is_current(partition, change)}
            if not sent:
                continue
            try:
                response = await self._submit(self._request(sent), _TIMEOUT_MS)
            except StorageError:
                # The disk of the controller in this process refuses: another may take over. What is pending stays so.
                self._wanted = {**sent, **self._wanted}
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if response.error_code:
                logger.warning(
                    "the controller takes no changes of in-sync replicas: %s", Errors(response.error_code).name
                )
                self._wanted = {**sent, **self._wanted}
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._take(response, sent)
                if any(
                    _is_current(partition, change) for partition, change in self._wanted.items() if partition in sent
                ):
                    await asyncio.sleep(_RETRY_SECONDS)

    def _request(self, changes: dict[Partition, IsrChange]) -> "messages.AlterPartitionRequest":
        kind = messages.AlterPartitionRequest
        own_epoch = self._broker_epoch()
        topics: dict[bytes, list[messages.AlterPartitionRequest.PartitionData]] = {}
        for partition, change in changes.items():
            isr = [
                kind.BrokerState(replica, own_epoch if replica == self._replicas.broker_id else epoch)
                for replica, epoch in zip(change.isr, change.broker_epochs, strict=True)
            ]
            topics.setdefault(partition.topic_id, []).append(
                kind.PartitionData(
                    partition_index=partition.index,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=isr,
                    partition_epoch=change.partition_epoch,
                )
            )
        return kind(
            broker_id=self._replicas.broker_id,
            broker_epoch=own_epoch,
            topics=[kind.TopicData(topic_id, found) for topic_id, found in topics.items()],
        )

    def _take(self, response: "messages.AlterPartitionResponse", sent: dict[Partition, IsrChange]) -> None:
        answers = {
            (topic.topic_id, found.partition_index): found for topic in response.topics for found in topic.partitions
        }
        for partition, change in sent.items():
            answer = answers.get((partition.topic_id, partition.index))
            if answer is None:
                self._wanted.setdefault(partition, change)
            elif answer.error_code:
                self._refused(partition, change, Errors(answer.error_code))
            else:
                self._replicas.isr_agreed(
                    partition, change, answer.leader_epoch, answer.partition_epoch, tuple(answer.isr)
                )

    def _refused(self, partition: Partition, change: IsrChange, error: Errors) -> None:
        self._replicas.counts.failed_isr_updates += 1
        logger.info(
            "%s-%d: the controller refuses %s as in sync: %s", partition.topic, partition.index, change.isr, error.name
        )
        if error == Errors.INELIGIBLE_REPLICA:
            self._loop.call_later(_INELIGIBLE_SECONDS, self._settle, partition, change, error)
        else:
            self._settle(partition, change, error)

    def _settle(self, partition: Partition, change: IsrChange, error: Errors) -> None:
        if partition.leader is not None and partition.leader.refused(change, error):
            self._wanted.setdefault(partition, change)
            self._errand.work()
        self._replicas.look_again(partition)


def _is_current(partition: Partition, change: IsrChange) -> bool:
    return partition.leader is not None and partition.leader.pending is change
