"""Requests of any key and version with something in every field, as raw material for mutation."""

import inspect
import re
from random import Random
from typing import Any, get_args, get_origin, get_type_hints

from ottla.protocol import messages as m
from ottla.protocol.codec import EncodeError, Message, Struct
from ottla.protocol.frames import RequestHeader, encode_request
from tests.support.requests import batch

TOPIC = "garbage"


def frame(key: int, version: int, dice: Random) -> bytes:
    """A whole valid frame, its size included."""
    without: set[str] = set()
    header = RequestHeader(key, version, dice.getrandbits(31), "mutant")
    while True:
        request = _filled(m.request_class(key), without, dice)
        assert isinstance(request, Message)
        try:
            return encode_request(header, request)
        except EncodeError as error:
            # The error names the field that this version does not have: leave it at its default.
            found = re.match(r"(\w+\.\w+) ", str(error))
            assert found and found[1] not in without, error
            without.add(found[1])


def _filled(cls: type[Struct], without: set[str], dice: Random) -> Struct:
    hints = get_type_hints(cls.__init__)
    struct = cls()
    for name, parameter in inspect.signature(cls).parameters.items():
        if f"{cls.__qualname__.rsplit('.', 1)[-1]}.{name}" not in without:
            setattr(struct, name, _value(hints[name], parameter.default, name, without, dice))
    return struct


def _value(hint: Any, default: Any, name: str, without: set[str], dice: Random) -> Any:
    for kind in (hint, *get_args(hint)):
        if get_origin(kind) is list:
            return [_value(get_args(kind)[0], None, name, without, dice) for _ in range(dice.choice((1, 1, 2)))]
    for kind in (hint, *get_args(hint)):
        if inspect.isclass(kind) and issubclass(kind, Struct):
            return _filled(kind, without, dice)
    if name == "records":
        return batch(2)
    kinds = {kind for kind in (hint, *get_args(hint)) if isinstance(kind, type)}
    if str in kinds:
        return TOPIC
    if bool in kinds:
        return dice.random() < 0.5
    if float in kinds:
        return dice.random()
    if bytes in kinds:
        return dice.randbytes(16)
    return default if isinstance(default, int) and dice.random() < 0.5 else dice.choice((0, 1, 2, 5))


_EXTREMES = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff",
    b"\x00",
)


def mutated(whole: bytes, dice: Random) -> bytes:
    """The frame with something wrong: bytes changed, lost or added, with a size that fits or lies."""
    payload = bytearray(whole[4:])
    for _ in range(dice.choice((1, 1, 2, 4))):
        place = dice.randrange(len(payload)) if payload else 0
        kind = dice.randrange(5)
        if kind == 0 and payload:
            payload[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            extreme = dice.choice(_EXTREMES)
            payload[place : place + len(extreme)] = extreme
        elif kind == 2:
            del payload[place : place + dice.randrange(1, 9)]
        elif kind == 3:
            payload[place:place] = dice.randbytes(dice.randrange(1, 9))
        else:
            del payload[place:]
    size = len(payload) if dice.random() < 0.9 else dice.choice((0, 1, len(payload) + 7, 2**31 - 1, 2**32 - 1, 10**8))
    return size.to_bytes(4, "big") + bytes(payload)
