"""Users that log in by SCRAM: made, changed and removed (KIP-554)."""

import pytest

from ottla.metadata.scram import SCRAM_SHA_256, SCRAM_SHA_512, keys_of
from ottla.model.errors import Errors
from ottla.protocol import messages
from tests.rules.controller.scene import Scene, features

Request = messages.AlterUserScramCredentialsRequest


def upsert(name: str, mechanism: int = 1, iterations: int = 4096) -> Request.ScramCredentialUpsertion:
    return Request.ScramCredentialUpsertion(name, mechanism, iterations, b"salt", b"salted")


def delete(name: str, mechanism: int = 1) -> Request.ScramCredentialDeletion:
    return Request.ScramCredentialDeletion(name, mechanism)


def alter(
    scene: Scene,
    *changes: Request.ScramCredentialUpsertion | Request.ScramCredentialDeletion,
) -> dict[str, int]:
    request = Request(
        deletions=[each for each in changes if isinstance(each, Request.ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, Request.ScramCredentialUpsertion)],
    )
    reply = scene.play(request).reply
    assert isinstance(reply, messages.AlterUserScramCredentialsResponse)
    return {result.user: result.error_code for result in reply.results}


def test_what_is_kept_are_keys_made_of_the_salted_password() -> None:
    scene = Scene()
    assert alter(scene, upsert("alice")) == {"alice": 0}
    assert alter(scene, upsert("alice", 2, 8192)) == {"alice": 0}
    kept = scene.image.scram[1, "alice"]
    assert (kept.stored_key, kept.server_key) == keys_of(SCRAM_SHA_256, b"salted")
    other = scene.image.scram[2, "alice"]
    assert (other.stored_key, other.server_key, other.iterations) == (*keys_of(SCRAM_SHA_512, b"salted"), 8192)


def test_a_credential_can_be_replaced_and_removed() -> None:
    scene = Scene()
    alter(scene, upsert("alice"))
    assert alter(scene, upsert("alice", iterations=16_384)) == {"alice": 0}
    assert scene.image.scram[1, "alice"].iterations == 16_384
    assert alter(scene, delete("alice")) == {"alice": 0}
    assert scene.image.scram == {}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (upsert(""), Errors.UNACCEPTABLE_CREDENTIAL),
        (upsert("alice", iterations=4095), Errors.UNACCEPTABLE_CREDENTIAL),
        (upsert("alice", iterations=16_385), Errors.UNACCEPTABLE_CREDENTIAL),
        (upsert("alice", iterations=-1), Errors.UNACCEPTABLE_CREDENTIAL),
        (upsert("alice", 0), Errors.UNSUPPORTED_SASL_MECHANISM),
        (upsert("alice", 3), Errors.UNSUPPORTED_SASL_MECHANISM),
        (delete("alice"), Errors.RESOURCE_NOT_FOUND),
        (delete("alice", 9), Errors.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_what_is_refused_changes_nothing(
    change: Request.ScramCredentialUpsertion | Request.ScramCredentialDeletion, error: Errors
) -> None:
    scene = Scene()
    assert alter(scene, change, upsert("bob")) == {change.name: error, "bob": 0}
    assert list(scene.image.scram) == [(1, "bob")]


def test_one_user_twice_in_a_request_is_refused_by_another_mechanism_too() -> None:
    scene = Scene()
    assert alter(scene, upsert("alice"), upsert("alice", 2)) == {"alice": Errors.DUPLICATE_RESOURCE}
    assert scene.image.scram == {}
    alter(scene, upsert("alice"))
    assert alter(scene, delete("alice"), upsert("alice", 2)) == {"alice": Errors.DUPLICATE_RESOURCE}
    assert list(scene.image.scram) == [(1, "alice")]


def test_the_first_thing_that_is_wrong_with_a_user_is_told() -> None:
    assert alter(Scene(), delete("alice"), upsert("alice")) == {"alice": Errors.RESOURCE_NOT_FOUND}


def test_an_old_metadata_version_keeps_no_users() -> None:
    assert alter(Scene(features(metadata=10)), upsert("alice")) == {"alice": Errors.UNSUPPORTED_VERSION}
