"""Delegation tokens: who may have, renew and end them, and until when they live (KIP-48, KIP-373)."""

import pytest

from ottla.controller import tokens
from ottla.controller.decision import Decision
from ottla.controller.machine import CommandContext
from ottla.metadata.tokens import token_hmac
from ottla.model.errors import Errors
from ottla.model.ids import Millis, uuid_text
from ottla.protocol import messages as m
from ottla.protocol.codec import Request, ResponseT_co
from tests.rules.controller.scene import Scene, features, uuid

SECRET = "nobody-knows"
DAY = 86_400_000
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


class TokenScene(Scene):
    def __init__(self, secret: str = SECRET, **given: str) -> None:
        super().__init__(None, **{"delegation.token.secret.key": secret, **given} if secret else given)
        self.wall = Millis(1_000_000)

    def asked(self, command: Request[ResponseT_co], who: str) -> ResponseT_co:
        self.ids += 1
        context = CommandContext(now=self.now, next_offset=0, fresh_ids=[uuid(self.ids)], wall=self.wall, requester=who)
        decision: Decision[ResponseT_co] = self.controller.decide(command, context)
        self.replay(decision.records)
        return decision.reply

    def create_token(self, who: str = ALICE, *renewers: str, **fields: object) -> "m.CreateDelegationTokenResponse":
        request = m.CreateDelegationTokenRequest(
            owner_principal_type=None,
            owner_principal_name=None,
            renewers=[m.CreateDelegationTokenRequest.CreatableRenewers(*each.split(":", 1)) for each in renewers],
            max_lifetime_ms=-1,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.asked(request, who)

    def renew(self, hmac: bytes, who: str, period: int = -1) -> tuple[int, int]:
        reply = self.asked(m.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period), who)
        return reply.error_code, reply.expiry_timestamp_ms

    def expire(self, hmac: bytes, who: str, period: int) -> tuple[int, int]:
        reply = self.asked(m.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period), who)
        return reply.error_code, reply.expiry_timestamp_ms


def test_a_token_is_an_id_and_a_secret_that_is_not_kept() -> None:
    scene = TokenScene()
    made = scene.create_token(ALICE, BOB)
    assert made.token_id == uuid_text(uuid(1))
    assert made.hmac == token_hmac(SECRET, made.token_id)
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (
        scene.wall,
        scene.wall + DAY,
        scene.wall + 7 * DAY,
    )
    (kept,) = scene.image.delegation_tokens.values()
    assert (kept.owner, kept.requester, list(kept.renewers), kept.token_id) == (ALICE, ALICE, [BOB], made.token_id)
    assert made.hmac not in kept.encode(0)


def test_kip_373_somebody_may_ask_for_anothers_token() -> None:
    scene = TokenScene()
    made = scene.create_token(ALICE, owner_principal_type="User", owner_principal_name="bob")
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "alice")
    (kept,) = scene.image.delegation_tokens.values()
    assert (kept.owner, kept.requester) == (BOB, ALICE)


@pytest.mark.parametrize(("asked", "longest"), [(-1, 7 * DAY), (0, 7 * DAY), (1_000, 1_000), (8 * DAY, 7 * DAY)])
def test_nothing_lives_longer_than_the_setting_allows(asked: int, longest: int) -> None:
    scene = TokenScene()
    made = scene.create_token(max_lifetime_ms=asked)
    assert made.max_timestamp_ms == scene.wall + longest
    assert made.expiry_timestamp_ms == scene.wall + min(longest, DAY)


def test_without_a_secret_there_are_no_tokens() -> None:
    scene = TokenScene("")
    assert scene.create_token().error_code == Errors.DELEGATION_TOKEN_AUTH_DISABLED
    assert scene.renew(b"x", ALICE)[0] == Errors.DELEGATION_TOKEN_AUTH_DISABLED
    assert scene.expire(b"x", ALICE, -1)[0] == Errors.DELEGATION_TOKEN_AUTH_DISABLED


def test_only_users_renew() -> None:
    scene = TokenScene()
    assert scene.create_token(ALICE, "Group:all").error_code == Errors.INVALID_PRINCIPAL_TYPE
    assert scene.image.delegation_tokens == {}


def test_owner_and_renewers_renew_and_nobody_else() -> None:
    scene = TokenScene()
    made = scene.create_token(ALICE, BOB)
    scene.wall = Millis(scene.wall + 1_000)
    assert scene.renew(made.hmac, ALICE) == (0, scene.wall + DAY)
    assert scene.renew(made.hmac, BOB, 5_000) == (0, scene.wall + 5_000)
    assert scene.renew(made.hmac, CAROL) == (Errors.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert scene.renew(b"wrong", ALICE) == (Errors.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert scene.renew(b"", ALICE) == (Errors.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_a_token_is_not_renewed_past_its_longest_life_nor_after_its_end() -> None:
    scene = TokenScene()
    made = scene.create_token(max_lifetime_ms=2_000)
    assert scene.renew(made.hmac, ALICE, 9_000) == (0, scene.wall + 2_000)
    scene.wall = Millis(scene.wall + 2_001)
    assert scene.renew(made.hmac, ALICE) == (Errors.DELEGATION_TOKEN_EXPIRED, 0)
    assert scene.expire(made.hmac, ALICE, 10) == (Errors.DELEGATION_TOKEN_EXPIRED, 0)


def test_a_token_may_end_earlier_or_at_once() -> None:
    scene = TokenScene()
    made = scene.create_token(ALICE, BOB)
    assert scene.expire(made.hmac, CAROL, -1) == (Errors.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert scene.expire(made.hmac, BOB, 500) == (0, scene.wall + 500)
    assert scene.expire(made.hmac, ALICE, -1) == (0, scene.wall)
    assert scene.image.delegation_tokens == {}
    assert scene.expire(made.hmac, ALICE, -1)[0] == Errors.DELEGATION_TOKEN_NOT_FOUND


def test_what_is_past_its_time_is_swept_every_so_often_so_many_at_once() -> None:
    scene = TokenScene(**{"delegation.token.expiry.check.interval.ms": "1000"})
    scene.controller.activated(Millis(0))
    for _ in range(3):
        scene.create_token(max_lifetime_ms=100)
    lives = scene.create_token()
    assert scene.controller.next_tick(Millis(0)) == 1_000
    later = Millis(scene.wall + 101)
    assert scene.controller.tick(Millis(999), later) == Decision(None)
    swept = scene.controller.tick(Millis(1_000), later).records
    assert len(swept) == 3
    scene.replay(swept)
    assert list(scene.image.delegation_tokens) == [lives.token_id]


def test_an_old_metadata_version_keeps_no_tokens() -> None:
    scene = TokenScene()
    scene.controller.image = Scene(features(metadata=13)).image
    assert scene.create_token().error_code == Errors.UNSUPPORTED_VERSION


def test_a_token_is_found_by_its_secret_and_not_among_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: the secret of each is worked out once."""
    scene = TokenScene()
    made = [scene.create_token() for _ in range(2_500)]
    worked_out: list[str] = []

    def counted(secret: str, token_id: str) -> bytes:
        worked_out.append(token_id)
        return token_hmac(secret, token_id)

    monkeypatch.setattr(tokens, "token_hmac", counted)
    other = TokenScene()
    other.controller.image = scene.image
    for each in (made[-1], made[0], made[1_000]):
        assert other.renew(each.hmac, ALICE)[0] == 0
    assert len(worked_out) == len(made)
    assert other.renew(b"x" * 64, ALICE)[0] == Errors.DELEGATION_TOKEN_NOT_FOUND
    assert other.expire(made[0].hmac, ALICE, -1)[0] == 0
    assert other.renew(made[0].hmac, ALICE)[0] == Errors.DELEGATION_TOKEN_NOT_FOUND
