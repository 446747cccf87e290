"""Registries against a real cluster, in threads of their own; and what is asked of them, as JSON."""

import http.client
import json
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from ottla.registry.machine.parsing import Languages
from ottla.testing.registry_thread import RegistryThread
from tests.support.patience import PATIENCE_SECONDS
from tests.support.toy_language import TOY_LANGUAGES


class Registry(RegistryThread):
    """`with Registry(kafka.bootstrap_servers) as registry`."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, object] | None = None, languages: Languages = TOY_LANGUAGES
    ) -> None:
        super().__init__(settings, languages)
        self._bootstrap = bootstrap

    def __enter__(self) -> Self:
        try:
            self.start(self._bootstrap)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def kill(self) -> None:
        """Nobody listens on its port any more."""
        super().kill()
        self.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return ask(self.url, method, path, body)


def ask(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status, and the body as JSON. Raises OSError when nobody is there."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
    try:
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, raw, {"content-type": "application/json"} if raw is not None else {})
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
    finally:
        connection.close()
