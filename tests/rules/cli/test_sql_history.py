"""`ottla sql history`: how it reaches a secured cluster and a registry that wants a login."""

from pathlib import Path

import pytest

from ottla.cli.parser import Arguments
from ottla.cli.sql import COMMANDS
from ottla.cli.sql.history import reached
from ottla.client.security import settings_of
from ottla.registry.client import RegistryClient

SECURED = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b"}


def given(folder: Path, settings: dict[str, str], **words: str) -> Arguments:
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    arguments = Arguments()
    for name, text in {"command_config": str(file), **words}.items():
        arguments.add(name, text)
    return arguments


def test_the_cluster_is_reached_as_the_file_of_command_config_says(tmp_path: Path) -> None:
    reach, registry = reached(given(tmp_path, {**SECURED, "bootstrap.servers": "broker:9"}))
    assert (reach.servers, registry) == ("broker:9", None)
    assert settings_of(Path(reach.settings_file)) == SECURED
    assert reached(given(tmp_path, {}, bootstrap="here:1"))[0] == ("here:1", "")
    (command,) = (each for each in COMMANDS if each.name == "history")
    assert "--command-config" in {name for option in command.options for name in option.names}


@pytest.mark.parametrize(
    ("login", "trusted"),
    [
        ("basic.auth.user.info", "ssl.truststore.location"),
        ("schema.registry.basic.auth.user.info", "schema.registry.ssl.ca.location"),
    ],
)
def test_the_registry_is_asked_with_the_login_of_the_file(tmp_path: Path, login: str, trusted: str) -> None:
    settings = {login: "ann:pass:word", trusted: "ca.pem"}
    _, registry = reached(given(tmp_path, settings, registry="https://registry:8081"))
    assert registry == RegistryClient("https://registry:8081", user="ann", password="pass:word", ca_file="ca.pem")
    _, registry = reached(given(tmp_path, {**settings, "schema.registry.url": "http://there:1"}))
    assert registry == RegistryClient("http://there:1", user="ann", password="pass:word", ca_file="ca.pem")
