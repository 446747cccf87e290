"""Checks instances: bytes of JSON against a schema, by jsonschema-rs.

The library gets one self-contained schema: every `$ref` is replaced by where it leads (`documents` knows better than
the library what a registry's reference names mean), so that there is nothing left that could be fetched.
"""

from collections.abc import Callable

import jsonschema_rs
import msgspec

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.json_schema.bundle import bundled
from ottla.registry.schemas.json_schema.documents import Documents
from ottla.registry.schemas.json_schema.drafts import escaped
from ottla.registry.schemas.json_schema.patterns import OPTIONS
from ottla.registry.schemas.json_schema.schema import JsonSchema
from ottla.registry.schemas.json_schema.validity import SHOWN, VALIDATORS


def validator(schema: JsonSchema) -> Callable[[bytes], str | None]:
    """Says what a payload lacks, or None. Raises InvalidSchema if nobody can say (for a pattern only Java reads)."""
    compiled = _compiled(schema.documents)
    is_valid = compiled.is_valid
    decode = msgspec.json.Decoder().decode

    def check(payload: bytes) -> str | None:
        try:
            value = decode(payload)
            if is_valid(value):
                return None
            return _told(compiled, value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return f"no JSON: {error}"
        except (ValueError, RecursionError) as error:
            return str(error)

    return check


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
