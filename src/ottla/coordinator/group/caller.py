"""Who sends a request: what a member's record tells about its client."""


class Caller:
    __slots__ = ("client_host", "client_id", "version")

    def __init__(self, client_id: str, client_host: str, version: int) -> None:
        self.client_id = client_id
        self.client_host = client_host
        self.version = version
        """Of the request."""
