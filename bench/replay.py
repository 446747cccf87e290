"""A client that costs next to nothing: replays one prepared Produce frame over some connections.

Run as a process of its own (`python -m bench.replay PORT TOPIC PARTITIONS DEPTH SECONDS`), so that it shares no
interpreter with what it measures. Every connection keeps DEPTH requests in flight. Replies are counted by their size,
which is the same for each success; the caller compares the count with the offsets in the log.
"""

import json
import selectors
import socket
import sys
import time
from dataclasses import dataclass

from bench import wire

RECORD_SIZE = 100
CHUNK = 1 << 16


@dataclass(slots=True)
class Lane:
    """One connection: `frame` again and again, `reply_size` bytes back for each."""

    socket: socket.socket
    frame: bytes
    reply_size: int
    in_flight: int = 0
    unread: int = 0

    def send(self, requests: int) -> None:
        self.in_flight += requests
        self.socket.sendall(self.frame * requests)

    def receive(self) -> int:
        """How many requests were answered by what lies in the socket."""
        received = len(self.socket.recv(CHUNK))
        if received == 0:
            raise ConnectionError("the server closed the connection")
        answered, self.unread = divmod(self.unread + received, self.reply_size)
        self.in_flight -= answered
        return answered


def open_lane(port: int, topic: str, partition: int) -> Lane:
    """The first request, answered before the clock starts, tells the size of a reply."""
    connection = wire.Connection(port)
    frame = wire.produce_request(topic, partition, wire.one_record_batch(b"x" * RECORD_SIZE))
    reply = connection.ask(frame)
    if error := wire.produced(reply).error:
        raise ConnectionError(f"Produce answered with error {error}")
    return Lane(connection.socket, frame, len(reply) + 8)


def replay(lanes: list[Lane], depth: int, seconds: float) -> tuple[int, float]:
    """Requests answered, and the seconds until the last answer."""
    selector = selectors.DefaultSelector()
    for lane in lanes:
        selector.register(lane.socket, selectors.EVENT_READ, lane)
    began = time.perf_counter()
    deadline = began + seconds
    for lane in lanes:
        lane.send(depth)
    answered = 0
    while any(lane.in_flight for lane in lanes):
        running = time.perf_counter() < deadline
        for key, _ in selector.select():
            lane = key.data
            done = lane.receive()
            answered += done
            if running and done:
                lane.send(done)
    return answered, time.perf_counter() - began


def main() -> None:
    port, partitions, depth = int(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
    lanes = [open_lane(port, sys.argv[2], partition) for partition in range(partitions)]
    cpu = time.process_time()
    answered, seconds = replay(lanes, depth, float(sys.argv[5]))
    print(json.dumps({"requests": answered, "seconds": seconds, "client_cpu": time.process_time() - cpu}))


if __name__ == "__main__":
    main()
