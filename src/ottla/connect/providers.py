"""Config providers (KIP-297): `${file:/run/secrets/db.properties:password}` in a config stands for what is in the file.
Resolved where a connector is judged or started, never before: topics, answers and logs hold the reference. A node's own
file has the same, resolved when it is read.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/run/secrets

The three of Kafka: file (a properties file and a key in it), directory (a file of that name is the value), env (a
variable of the worker's environment).
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ottla.connect.definitions import ConfigError
from ottla.connect.transforms.patterns import Pattern, compiled
from ottla.model.properties.file import parse_properties

LOCAL: Final = {
    "config.providers": "file,directory,env",
    "config.providers.file.class": "FileConfigProvider",
    "config.providers.directory.class": "DirectoryConfigProvider",
    "config.providers.env.class": "EnvVarConfigProvider",
}
"""Where no worker says which there are: whoever runs a connector by himself may read what he may read."""
_REFERENCE: Final = re.compile(r"\$\{([^}:]{1,200}):(?:([^}]{0,4000}?):)?([^}]{1,4000}?)\}")
_LARGEST: Final = 1 << 20
"""Bytes of one file."""

Provide = Callable[[str, str], str | None]
"""From a path and a key to a value; None: there is none, and the reference stays as it is, as in Java."""


@dataclass(frozen=True, slots=True)
class _Files:
    allowed: tuple[Path, ...]

    def text(self, path: Path) -> str | None:
        resolved = path.resolve()
        if self.allowed and not any(resolved.is_relative_to(allowed) for allowed in self.allowed):
            raise ConfigError(f"The path {path} is not permitted to be accessed: allowed.paths does not hold it")
        try:
            with resolved.open("rb") as file:
                content = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"Could not read properties from file {path}: {error.strerror}") from None
        if len(content) > _LARGEST:
            raise ConfigError(f"{path} is longer than {_LARGEST} bytes")
        return content.decode(errors="replace")

    def property(self, path: str, key: str) -> str | None:
        text = self.text(Path(path))
        if text is None:
            raise ConfigError(f"Could not read properties from file {path}")
        try:
            return parse_properties(text).get(key)
        except ValueError:
            raise ConfigError(f"{path} is no properties file") from None

    def file(self, path: str, key: str) -> str | None:
        if "/" in key or key in ("", ".", ".."):
            return None
        return self.text(Path(path) / key)


@dataclass(frozen=True, slots=True)
class _Environment:
    allowed: Pattern | None

    def variable(self, path: str, key: str) -> str | None:
        return os.environ.get(key) if self.allowed is None or self.allowed.fullmatch(key) else None


class Providers:
    """`resolve` gives a config with the secrets in it: for whoever runs the connector, and nobody else."""

    __slots__ = ("_by_name",)

    def __init__(self, given: Mapping[str, str]) -> None:
        """Of a worker's settings. Raises ConfigError for a class that is none of the three."""
        self._by_name: dict[str, Provide] = {}
        for name in filter(None, (each.strip() for each in given.get("config.providers", "").split(","))):
            prefix = f"config.providers.{name}"
            self._by_name[name] = _provider(name, given.get(f"{prefix}.class", ""), prefix, given)

    def resolve(self, config: Mapping[str, str | None]) -> dict[str, str | None]:
        """Raises ConfigError, whose text holds no secret."""
        return {name: None if value is None else self._resolved(value) for name, value in config.items()}

    def look_up(self, provider: str, path: str, key: str) -> str | None:
        """None: there is none. Raises ConfigError."""
        provide = self._by_name.get(provider)
        return None if provide is None else provide(path, key)

    def _resolved(self, value: str) -> str:
        def found(match: re.Match[str]) -> str:
            text = self.look_up(match[1], match[2] or "", match[3])
            return match[0] if text is None else text

        return _REFERENCE.sub(found, value) if "${" in value and self._by_name else value

    def secrets(self, config: Mapping[str, str | None]) -> tuple[str, ...]:
        """The texts that must not be shown: what a trace is searched for before it is written down."""
        resolved = self.resolve(config)
        changed = [value for name, value in resolved.items() if value and value != config[name] and len(value) > 2]
        parts = [text for value in config.values() if value for text in self._parts(value)]
        return tuple(sorted({*changed, *parts}, key=len, reverse=True))

    def _parts(self, value: str) -> list[str]:
        found = [self._resolved(match[0]) for match in _REFERENCE.finditer(value)]
        return [text for text in found if len(text) > 2 and not text.startswith("${")]


def _provider(name: str, class_name: str, prefix: str, given: Mapping[str, str]) -> Provide:
    simple = class_name.rpartition(".")[2]
    paths = given.get(f"{prefix}.param.allowed.paths", "")
    files = _Files(tuple(Path(each.strip()).resolve() for each in paths.split(",") if each.strip()))
    if simple == "FileConfigProvider":
        return files.property
    if simple == "DirectoryConfigProvider":
        return files.file
    if simple == "EnvVarConfigProvider":
        pattern = given.get(f"{prefix}.param.allowlist.pattern", "")
        try:
            return _Environment(compiled(pattern) if pattern else None).variable
        except ValueError as error:
            raise ConfigError.of(f"{prefix}.param.allowlist.pattern", pattern, str(error)) from None
    known = (
        "FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider of org.apache.kafka.common.config.provider"
    )
    raise ConfigError.of(f"{prefix}.class", class_name, f"no provider of this name: there are {known}")


def masked(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "[hidden]")
    return text
