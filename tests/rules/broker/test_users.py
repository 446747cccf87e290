"""Who does not exist is answered like those who do: neither salt nor number tells anybody of an absence."""

from collections.abc import Mapping
from typing import Final

from ottla.broker.security.users import Users
from ottla.metadata.image import MetadataImage
from ottla.metadata.scram import MIN_ITERATIONS, SCRAM_SHA_256, SCRAM_SHA_512, new_salt
from ottla.model.properties import Settings
from ottla.node.logins import secret_for_strangers
from ottla.protocol.messages import UserScramCredentialRecord
from tests.rules.model.node_files import COMBINED

SECRET: Final = b"of this node"
KAFKAS: Final = new_salt(bytes(range(17, 34)))
JAAS: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def users(kept: Mapping[str, tuple[int, bytes]]) -> Users:
    records = {
        (SCRAM_SHA_256.type, name): UserScramCredentialRecord(name, SCRAM_SHA_256.type, salt, b"s", b"k", iterations)
        for name, (iterations, salt) in kept.items()
    }
    image = MetadataImage(scram=records)
    return Users(lambda: image, None, SECRET)


def test_a_stranger_looks_like_users_that_kafkas_tools_made() -> None:
    stranger = users({}).stranger(SCRAM_SHA_256, "eve")
    assert stranger.iterations == MIN_ITERATIONS
    assert stranger.salt.isalnum()
    assert len(stranger.salt) in (25, 26)


def test_a_stranger_has_the_iterations_that_most_users_have() -> None:
    book = users({"alice": (8192, KAFKAS), "bob": (8192, KAFKAS), "carol": (4096, KAFKAS)})
    assert book.stranger(SCRAM_SHA_256, "eve").iterations == 8192
    assert book.stranger(SCRAM_SHA_512, "eve").iterations == MIN_ITERATIONS, "of that mechanism there is nobody"


def test_a_stranger_has_a_salt_of_the_length_that_most_have() -> None:
    stranger = users({"alice": (4096, bytes(64))}).stranger(SCRAM_SHA_256, "eve")
    assert len(stranger.salt) == 64


def test_it_is_the_same_each_time_and_another_for_another_name() -> None:
    book, again = users({"alice": (4096, bytes(16))}), users({"alice": (4096, bytes(16))})
    assert book.stranger(SCRAM_SHA_256, "eve") == again.stranger(SCRAM_SHA_256, "eve")
    assert book.stranger(SCRAM_SHA_256, "eve") != book.stranger(SCRAM_SHA_256, "mallory")


def secret(**more: str) -> bytes:
    given = {name.replace("__", "-").replace("_", "."): text for name, text in more.items()}
    return secret_for_strangers(Settings.from_properties({**COMBINED, **given}))


def test_all_nodes_give_the_same_answer_if_they_have_a_secret_in_common() -> None:
    one, other = ({"ssl_keystore_password": each} for each in ("of-node-1", "of-node-2"))
    assert secret(**one) != secret(**other)
    assert secret(delegation_token_secret_key="common", **one) == secret(delegation_token_secret_key="common", **other)
    login = {"sasl_jaas_config": f'{JAAS} username="node" password="common";'}
    assert secret(**login, **one) == secret(**login, **other)


def test_what_everybody_can_guess_is_no_secret() -> None:
    assert secret(sasl_jaas_config=f"{JAAS};") != secret(sasl_jaas_config=f"{JAAS};"), "drawn anew for each start"
