"""The process that owns this one, as `runtime.child` starts it: messages from it and to it, and its end."""

import os
import pickle
import select
import socket
import sys


class Gone(SystemExit):
    """The parent is, and nobody is left to be told. If nobody catches it the process ends, in good order, with 0."""


class Parent:
    """All a child needs to do is to hear and to say, which raise Gone."""

    __slots__ = ("_news", "_reader", "_writer")

    def __init__(self, end: socket.socket) -> None:
        self._reader = end.makefile("rb")
        self._writer = end.makefile("wb")
        self._news = select.poll()
        self._news.register(end, select.POLLIN)

    @classmethod
    def of_this_process(cls) -> "Parent":
        """By the last argument of the command line. What this process starts must not hold the line open."""
        number = int(sys.argv[-1])
        os.set_inheritable(number, False)
        return cls(socket.socket(fileno=number))

    def hear(self) -> object:
        try:
            return pickle.load(self._reader)
        except (EOFError, ConnectionError):
            raise Gone from None

    def say(self, message: object) -> None:
        try:
            pickle.dump(message, self._writer, pickle.HIGHEST_PROTOCOL)
            self._writer.flush()
        except ConnectionError:
            raise Gone from None

    @property
    def has_news(self) -> bool:
        """There is something to hear, or the parent is gone."""
        return bool(self._news.poll(0))
