"""Pages of a node or of an application, as tools read them: over TLS, and as the user, of --command-config."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from collections.abc import Mapping
from typing import Final

_MOST_BYTES: Final = 64 << 20
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def page(url: str, settings: Mapping[str, str], timeout_s: float) -> str:
    """Raises OSError or ValueError for what cannot be read, SecurityRefused for settings that cannot be used."""
    import ssl
    from base64 import b64encode
    from urllib.parse import urlsplit
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

    from ottla.client.security import security

    class NoRedirect(HTTPRedirectHandler):
        """A password goes nowhere else."""

        def redirect_request(self, *_: object) -> None:
            return None

    safety = security(settings)
    at = urlsplit(url)
    headers = {}
    by = safety.credentials
    # Nor to anybody who could be listening.
    if by is not None and by.password and (at.scheme == "https" or at.hostname in _LOOPBACK):
        headers["Authorization"] = f"Basic {b64encode(f'{by.name}:{by.password}'.encode()).decode()}"
    opener = build_opener(NoRedirect, HTTPSHandler(context=safety.tls or ssl.create_default_context()))
    with opener.open(Request(url, headers=headers), timeout=timeout_s) as answer:
        text: str = answer.read(_MOST_BYTES).decode()
    return text
