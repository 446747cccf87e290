"""What a URL has is read within a bound of bytes and of time, whatever the server does."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from ottla.net.reading_urls import read_url

Answer = Callable[[socket.socket, threading.Event], None]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Answers one request in its own way."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def work() -> None:
            asking, _ = server.accept()
            with asking, suppress(OSError):
                asking.recv(4096)
                answer(asking, over)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/keys"
        finally:
            over.set()
            thread.join()


def whole(asking: socket.socket, over: threading.Event) -> None:
    asking.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkeys")


def without_end(asking: socket.socket, over: threading.Event) -> None:
    asking.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    while not over.is_set():
        asking.sendall(bytes(64 * 1024))


def body_that_drips(asking: socket.socket, over: threading.Event) -> None:
    asking.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.wait(0.01):
        asking.sendall(b"x")


def headers_that_drip(asking: socket.socket, over: threading.Event) -> None:
    asking.sendall(b"HTTP/1.1 200 OK\r\nX-Drop: ")
    while not over.wait(0.01):
        asking.sendall(b"x")


def silence(asking: socket.socket, over: threading.Event) -> None:
    over.wait()


def test_what_is_there_is_read() -> None:
    with serving(whole) as url:
        assert read_url(url, timeout_s=60, max_bytes=4) == b"keys"


def test_a_gigabyte_is_given_up_when_it_is_more_than_allowed() -> None:
    with serving(without_end) as url, pytest.raises(ValueError, match=r"larger than 100000 bytes \(the.setting\)"):
        read_url(url, timeout_s=60, max_bytes=100_000, limit="the.setting")


@pytest.mark.parametrize("answer", [body_that_drips, headers_that_drip, silence])
def test_who_does_not_come_to_an_end_is_given_up_in_time(answer: Answer) -> None:
    with serving(answer) as url, pytest.raises((OSError, ValueError)):
        read_url(url, timeout_s=0.3, max_bytes=1 << 20)
