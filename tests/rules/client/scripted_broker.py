"""A broker that says what a test tells it to: it listens on a real socket and answers by a script."""

import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.protocol.frames import decode_request_header, encode_response

Reply = Message | None
"""None: the connection is closed instead of an answer."""
Script = Callable[[Message], Reply]

_RANGES = {0: (3, 12), 1: (4, 12), 2: (1, 9), 3: (0, 12), 18: (0, 4), 22: (0, 5), 32: (1, 4)}


class ScriptedBroker:
    """`with ScriptedBroker(script) as broker:` then broker.port. `script` sees each request but ApiVersions."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for sock in self._sockets:
            sock.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as stream:
            try:
                while len(size := stream.read(4)) == 4:
                    frame = stream.read(int.from_bytes(size, "big"))
                    reply = self._reply(frame)
                    if reply is None:
                        return
                    sock.sendall(reply)
            except OSError:
                return

    def _reply(self, frame: bytes) -> bytes | None:
        header, body = decode_request_header(frame)
        answer: Reply
        if header.api_key == 18:
            answer = _api_versions()
        else:
            request = messages.request_class(header.api_key).decode(frame, header.api_version, body)
            answer = self._script(request)
        if answer is None:
            return None
        return encode_response(header.api_key, header.api_version, header.correlation_id, answer)


def _api_versions() -> messages.ApiVersionsResponse:
    return messages.ApiVersionsResponse(
        api_keys=[
            messages.ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in _RANGES.items()
        ]
    )


def metadata(port: int, partitions: int = 1, *, leader: int = 1, topic: str = "orders") -> messages.MetadataResponse:
    """One broker that leads every partition of one topic."""
    return messages.MetadataResponse(
        brokers=[messages.MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)],
        topics=[
            messages.MetadataResponse.MetadataResponseTopic(
                name=topic,
                topic_id=b"0123456789abcdef",
                partitions=[
                    messages.MetadataResponse.MetadataResponsePartition(
                        partition_index=index, leader_id=leader, replica_nodes=[1], isr_nodes=[1]
                    )
                    for index in range(partitions)
                ],
            )
        ],
    )


class HurriedClock:
    """Stands in for `time` where deadlines look at it: pauses take no time, and a moment passes with each look. So what
    happens at a deadline comes soon, and on a busy machine not too soon."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def monotonic(self) -> float:
        self.sleep(0.02)
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        self._ahead += seconds
