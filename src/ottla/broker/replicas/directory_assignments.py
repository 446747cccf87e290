"""Tells the controller in which log directory a replica lies, or that it is lost: AssignReplicasToDirs (KIP-858).

From it the controller knows whose leader to replace when one of several directories fails.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Final

from ottla.broker.partition import Partition
from ottla.model.errors import Errors
from ottla.model.ids import BrokerId, Uuid
from ottla.protocol import messages
from ottla.runtime.errand import Errand
from ottla.storage.fs import StorageError

_RETRY_SECONDS: Final = 0.1
_TIMEOUT_MS: Final = 5_000
_AT_ONCE: Final = 2_000
"""Partitions in one request, as Kafka's brokers limit it."""

Submit = Callable[["messages.AssignReplicasToDirsRequest", int], Awaitable["messages.AssignReplicasToDirsResponse"]]


class DirectoryAssignments:
    """Hears `Events.lies_in`. One request at a time."""

    __slots__ = ("_broker_epoch", "_broker_id", "_errand", "_submit", "_wanted")

    def __init__(
        self, loop: AbstractEventLoop, broker_id: BrokerId, submit: Submit, broker_epoch: Callable[[], int]
    ) -> None:
        self._broker_id = broker_id
        self._submit = submit
        self._broker_epoch = broker_epoch
        self._wanted: dict[Partition, Uuid] = {}
        self._errand = Errand(loop, "directory assignments", self._send_all, lambda: bool(self._wanted))

    def want(self, partition: Partition, directory: Uuid) -> None:
        self._wanted[partition] = directory
        self._errand.work()

    async def stop(self) -> None:
        self._wanted.clear()
        await self._errand.stop()

    async def _send_all(self) -> None:
        while self._wanted:
            sent = dict(islice(self._wanted.items(), _AT_ONCE))
            for partition in sent:
                del self._wanted[partition]
            if not await self._is_answered(sent):
                self._wanted = {**sent, **self._wanted}
                await asyncio.sleep(_RETRY_SECONDS)

    async def _is_answered(self, sent: dict[Partition, Uuid]) -> bool:
        """What is refused for one partition is settled too: it is not ours any more, and the metadata will say so."""
        try:
            response = await self._submit(self._request(sent), _TIMEOUT_MS)
        except StorageError:
            return False  # the disk of the controller in this process refuses: another may take over
        # A cluster from before KIP-858 knows of one directory for each broker only.
        return response.error_code in (Errors.NONE, Errors.UNSUPPORTED_VERSION)

    def _request(self, sent: dict[Partition, Uuid]) -> "messages.AssignReplicasToDirsRequest":
        kind = messages.AssignReplicasToDirsRequest
        found: dict[Uuid, dict[bytes, list[messages.AssignReplicasToDirsRequest.PartitionData]]] = {}
        for partition, directory in sent.items():
            topics = found.setdefault(directory, {})
            topics.setdefault(partition.topic_id, []).append(kind.PartitionData(partition.index))
        return kind(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                kind.DirectoryData(directory, [kind.TopicData(topic_id, found) for topic_id, found in topics.items()])
                for directory, topics in found.items()
            ],
        )
