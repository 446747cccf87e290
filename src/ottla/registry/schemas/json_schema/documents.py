"""The texts that belong to one schema, and what its references point to. Nothing is fetched: what is not here is not.

A document is the schema itself or one of its references. A reference is known by its name and by that name resolved
against the schema's own `$id`, as for Confluent's server; each `$id` inside a document begins a resource of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin

from ottla.registry.schemas.base import Budget
from ottla.registry.schemas.json_schema.drafts import Draft, draft_of, subschemas, unescaped
from ottla.registry.schemas.json_schema.json_text import Json

if TYPE_CHECKING:
    from ottla.registry.schemas.json_schema.shapes import Shape


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a schema stands."""

    schema: Json
    base: str
    """The URI against which its references are resolved."""
    draft: Draft
    documents: "Documents"

    @property
    def key(self) -> tuple[int, str]:
        """Equal for schemas that mean the same: equal text, and references that go to the same targets."""
        return self.documents.number(self.schema), self.base


class Documents:
    def __init__(self, tree: Json, references: Sequence[tuple[str, Json]], budget: Budget) -> None:
        self.shapes: dict[tuple[int, str], Shape] = {}
        """What was made of the places so far (`shapes.shape_of`)."""
        self._numbers: dict[int, int] = {}
        self._table: dict[object, int] = {}
        self._standing: dict[int, tuple[str, Draft]] = {}
        """Base and draft of every schema, by identity; the trees stay as long as this object."""
        self._resources: dict[str, Place] = {}
        self._anchors: dict[tuple[str, str], Place] = {}
        self._names: dict[str, Place] = {}
        self._homes: dict[str, Place] = {}
        self.homes: list[Place] = []
        """The roots of all documents, the schema's own first."""
        draft = draft_of(tree)
        self.root = self._admit(tree, "", draft, budget)
        for name, text in references:
            place = self._admit(text, joined(self.root.base, name) or name, draft_of(text, draft), budget)
            self._names.setdefault(name.removeprefix("./").partition("#")[0], place)

    def number(self, value: Json) -> int:
        """The same for equal values, the order of members aside."""
        if isinstance(value, dict | list):
            return self._numbers[id(value)]
        return self._table.setdefault(_leaf(value), len(self._table))

    def standing(self, schema: dict[str, Json], otherwise: Place) -> Place:
        """A schema inside `otherwise`."""
        base, draft = self._standing.get(id(schema), (otherwise.base, otherwise.draft))
        return Place(schema, base, draft, self)

    def follow(self, place: Place, reference: str) -> Place | None:
        """What a `$ref` at a place points to."""
        if reference.startswith("#"):
            uri, fragment = place.base, reference[1:]
        else:
            uri, _, fragment = (joined(place.base, reference, keep_fragment=True) or reference).partition("#")
        name = reference.partition("#")[0].removeprefix("./")
        resource = self._resources.get(uri) or (self._names.get(name) if name else None)
        if resource is None:
            return None
        fragment = unquote(fragment)
        if not fragment:
            return resource
        if (anchored := self._anchors.get((resource.base, fragment))) is not None:
            return anchored
        if not fragment.startswith("/"):
            return None
        # Generated schemas often give every property an `$id` and still point from the root of the document.
        return self._pointed(resource, fragment) or self._pointed(self._homes[resource.base], fragment)

    def dynamic(self, place: Place, reference: str) -> Place | None:
        """What a `$dynamicRef` points to: the outermost schema with that anchor, which for us is the root's."""
        target = self.follow(place, reference)
        name = reference.partition("#")[2]
        if target is None or not isinstance(target.schema, dict) or target.schema.get("$dynamicAnchor") != name:
            return target
        return self._anchors.get((self.root.base, name), target)

    def recursive(self, place: Place) -> Place | None:
        """What a `$recursiveRef` (2019-09) points to."""
        target = self.follow(place, "#")
        marked = (
            target is not None and isinstance(target.schema, dict) and target.schema.get("$recursiveAnchor") is True
        )
        return self.root if marked else target

    def _admit(self, tree: Json, uri: str, draft: Draft, budget: Budget) -> Place:
        self._number_all(tree, budget)
        home = Place(tree, uri, draft, self)
        if isinstance(tree, dict):
            self._look_through(home)
            home = self.standing(tree, home)
        for known_as in (uri, home.base):
            self._resources.setdefault(known_as, home)
            self._homes.setdefault(known_as, home)
        self.homes.append(home)
        return home

    def _look_through(self, home: Place) -> None:
        """Finds every `$id` and anchor of a document."""
        todo: list[tuple[Json, str, Draft]] = [(home.schema, home.base, home.draft)]
        for schema, outer_base, outer_draft in todo:
            if isinstance(schema, dict):
                base, draft = self._enter(schema, outer_base, outer_draft, home)
                todo.extend((inner, base, draft) for _, inner in subschemas(schema))

    def _enter(self, schema: dict[str, Json], base: str, draft: Draft, home: Place) -> tuple[str, Draft]:
        """Gives what holds inside of a schema."""
        if not (draft.ref_hides_siblings and "$ref" in schema):
            own = schema.get(draft.id_keyword)
            if isinstance(own, str) and (uri := joined(base, own)) is not None and not own.startswith("#"):
                base, draft = uri, draft_of(schema, draft)
                self._resources.setdefault(base, Place(schema, base, draft, self))
                self._homes.setdefault(base, home)
            for anchor in _anchors_of(schema, own):
                self._anchors.setdefault((base, anchor), Place(schema, base, draft, self))
        self._standing[id(schema)] = base, draft
        return base, draft

    def _pointed(self, resource: Place, pointer: str) -> Place | None:
        value, place = resource.schema, resource
        for step in pointer.split("/")[1:]:
            name = unescaped(step)
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                return None
            if isinstance(value, dict):
                place = self.standing(value, place)
        return Place(value, place.base, place.draft, self) if isinstance(value, dict | bool) else None

    def _number_all(self, tree: Json, budget: Budget) -> None:
        containers = [tree] if isinstance(tree, dict | list) else []
        for container in containers:
            inside = container.values() if isinstance(container, dict) else container
            containers.extend(value for value in inside if isinstance(value, dict | list))
            budget.spend(len(inside))
        for container in reversed(containers):
            key: object
            if isinstance(container, dict):
                key = frozenset((name, self.number(value)) for name, value in container.items())
            else:
                key = tuple(self.number(value) for value in container)
            self._numbers[id(container)] = self._table.setdefault(key, len(self._table))


def joined(base: str, reference: str, *, keep_fragment: bool = False) -> str | None:
    """None if either is no URI at all."""
    try:
        uri = urljoin(base, reference)
    except ValueError:
        return None
    return uri if keep_fragment else uri.partition("#")[0]


def _anchors_of(schema: dict[str, Json], own: Json) -> list[str]:
    found = [schema[keyword] for keyword in ("$anchor", "$dynamicAnchor") if keyword in schema]
    if isinstance(own, str) and "#" in own:
        found.append(own.partition("#")[2])
    return [name for name in found if isinstance(name, str) and name]


def _leaf(value: str | int | Decimal | bool | None) -> tuple[str, object]:
    if isinstance(value, bool) or value is None:
        return "constant", value
    return ("string" if isinstance(value, str) else "number"), value
