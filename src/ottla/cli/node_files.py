"""Settings of a node out of its file, with what config providers give it (KIP-421): `${file:/run/secrets/node:key}` in
a value stands for what is in that file."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.model.properties import Settings

_PROVIDERS: Final = "config.providers"


def node_settings_of(given: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    from ottla.model.properties import Settings, SettingsError

    if not given.get(_PROVIDERS, "").strip():
        return Settings.from_properties(given)
    from ottla.connect.definitions import ConfigError
    from ottla.connect.providers import Providers  # Kafka's three, as Connect has them

    def resolve(provider: str, path: str, key: str) -> str:
        found = providers.look_up(provider, path, key)
        if found is None:
            raise SettingsError([f"{_PROVIDERS}: {provider} has no {key}{f' in {path}' if path else ''}"])
        return found

    try:
        providers = Providers(given)
        return Settings.from_properties(given, resolve)
    except ConfigError as error:
        raise SettingsError([f"{_PROVIDERS}: {error}"]) from None
