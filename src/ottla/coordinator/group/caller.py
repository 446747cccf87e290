"""Who sends a request: what a member's record tells about its client, and what it may know."""

from collections.abc import Callable


def everything(topic: str) -> bool:
    return True


class Caller:
    __slots__ = ("client_host", "client_id", "may_describe", "version")

    def __init__(
        self, client_id: str, client_host: str, version: int, may_describe: Callable[[str], bool] = everything
    ) -> None:
        self.client_id = client_id
        self.client_host = client_host
        self.version = version
        """Of the request."""
        self.may_describe = may_describe
        """Whether it may know of a topic: a pattern matches no other. Asked in a thread beside the loop."""
