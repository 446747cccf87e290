"""Checks instances: bytes of JSON against a schema, by jsonschema-rs.

The library gets one self-contained schema: every `$ref` is replaced by where it leads (`documents` knows better than
the library what a registry's reference names mean), so that there is nothing left that could be fetched.
"""

from collections.abc import Callable
from typing import Final

import jsonschema_rs
import msgspec

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.json_schema.bundle import bundled
from ottla.registry.schemas.json_schema.documents import Documents
from ottla.registry.schemas.json_schema.drafts import escaped
from ottla.registry.schemas.json_schema.looks import CHARACTERS, Graph, Value
from ottla.registry.schemas.json_schema.patterns import OPTIONS
from ottla.registry.schemas.json_schema.schema import JsonSchema
from ottla.registry.schemas.json_schema.validity import SHOWN, VALIDATORS

EASY: Final = 16
"""Looks at each value for which nobody is made to wait who sent that many values."""
MOST_LOOKS: Final = 200_000
"""At all values of a payload beyond that: some twenty milliseconds, in which nobody else gets to work."""
MOST_TOLD: Final = 1_000
"""Of those alternatives that a refusal may tell of: each takes hundreds of times as long as to say whether it holds."""

TOO_MANY: Final = "cannot be checked: too many alternatives lead to its values, at each level more of them"
NOT_TOLD: Final = "none of many alternatives fits"


def validator(schema: JsonSchema) -> Callable[[bytes], str | None]:
    """Says what a payload lacks, or None. Raises InvalidSchema if nobody can say (for a pattern only Java reads)."""
    effort = _Effort(Graph(schema.documents))
    compiled = _compiled(schema.documents)
    is_valid = compiled.is_valid
    decode = msgspec.json.Decoder().decode

    def check(payload: bytes) -> str | None:
        try:
            value = decode(payload)
            if not effort.may_check(value, payload):
                return TOO_MANY
            if is_valid(value):
                return None
            return _told(compiled, value) if effort.may_tell(value, payload) else NOT_TOLD
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return f"no JSON: {error}"
        except (ValueError, RecursionError) as error:
            return str(error)

    return check


class _Effort:
    """Decides what is too much of it, by a glance if that is enough."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._most = graph.most(MOST_LOOKS)

    def may_check(self, value: Value, payload: bytes) -> bool:
        if self._most is not None and self._most <= EASY:
            return True
        values = _values(payload)
        if self._most is not None and self._most * values <= MOST_LOOKS:
            return True
        limit = MOST_LOOKS + EASY * values
        return self._graph.looks(value, limit=limit, among_alternatives=limit) is not None

    def may_tell(self, value: Value, payload: bytes) -> bool:
        if self._most is not None and (not self._graph.has_alternatives or self._most * _values(payload) <= MOST_TOLD):
            return True
        return self._graph.looks(value, limit=MOST_LOOKS, among_alternatives=MOST_TOLD) is not None


def _values(payload: bytes) -> int:
    """As many as there are at most, and more for long strings, which take longer to look at."""
    return payload.count(b",") + payload.count(b"[") + payload.count(b"{") + len(payload) // CHARACTERS + 1


def _told(compiled: jsonschema_rs.Validator, value: object) -> str:
    try:
        compiled.validate(value)
    except jsonschema_rs.ValidationError as error:
        where = "".join(f"/{escaped(str(step))}" for step in error.instance_path)
        said = error.message if len(error.message) <= SHOWN else error.message[:SHOWN] + "…"
        return f"{said} at #{where}"
    raise AssertionError("valid after all")


def _compiled(documents: Documents) -> jsonschema_rs.Validator:
    root = documents.root
    if isinstance(root.schema, bool):
        return jsonschema_rs.Draft7Validator(root.schema)
    (uri, first), *others = bundled(documents)
    assert isinstance(first, dict)
    try:
        return VALIDATORS[root.draft](
            first,
            base_uri=uri,
            registry=jsonschema_rs.Registry(others) if others else None,
            pattern_options=OPTIONS,
            validate_formats=False,
            offline=True,
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise InvalidSchema(f"instances cannot be checked: {str(error)[:SHOWN]}") from None
