"""Clients that only commit: each keeps the offsets of one group, with one OffsetCommit in flight at a time.

Run as a process of its own (`python -m bench.committers PORT TOPIC GROUP COMMITTERS PARTITIONS SECONDS`). Every request
commits a new offset for each partition; every answer must be, to the byte, the one that says that all were taken.
"""

import json
import sys
import time
from dataclasses import dataclass

from bench import wire
from bench.replay import CHUNK, Lane, replay

PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class Committer(Lane):
    """One connection, one group. `frame` is unused: no two requests are the same."""

    group: str = ""
    topic: str = ""
    partitions: int = 0
    offset: int = 0
    reply: bytes = b""
    received: bytes = b""

    def send(self, requests: int) -> None:
        self.in_flight += requests
        for _ in range(requests):
            self.socket.sendall(self.next_frame())

    def next_frame(self) -> bytes:
        self.offset += 1
        return wire.offset_commit_request(self.group, self.topic, [self.offset] * self.partitions)

    def receive(self) -> int:
        piece = self.socket.recv(CHUNK)
        if not piece:
            raise ConnectionError("the server closed the connection")
        self.received += piece
        answered = len(self.received) // self.reply_size
        whole = answered * self.reply_size
        if self.received[:whole] != self.reply * answered:
            raise ConnectionError("OffsetCommit was refused")
        self.received = self.received[whole:]
        self.in_flight -= answered
        return answered


def open_committer(port: int, group: str, topic: str, partitions: int) -> Committer:
    """The first commit, answered before the clock starts; until then the group may still be on its way to this node."""
    connection = wire.Connection(port)
    committer = Committer(connection.socket, b"", 0, group=group, topic=topic, partitions=partitions)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        reply = connection.ask(committer.next_frame())
        errors = wire.committed_errors(reply)
        if errors == [0] * partitions:
            break
        if time.monotonic() > deadline:
            raise ConnectionError(f"OffsetCommit answers with errors {errors}")
        time.sleep(0.1)
    # Length and correlation id, which is the same in every request.
    committer.reply = (len(reply) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + reply
    committer.reply_size = len(committer.reply)
    return committer


def main() -> None:
    port, topic, group = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    committers, partitions = int(sys.argv[4]), int(sys.argv[5])
    lanes = [open_committer(port, f"{group}-{index}", topic, partitions) for index in range(committers)]
    cpu = time.process_time()
    answered, seconds = replay(list(lanes), 1, float(sys.argv[6]))
    found = {"requests": answered, "seconds": seconds, "client_cpu": time.process_time() - cpu}
    print(json.dumps({**found, "offsets": {lane.group: lane.offset for lane in lanes}}))


if __name__ == "__main__":
    main()
