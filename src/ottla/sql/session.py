"""Statements one after another: variables, properties, and the catalog they change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.sql import tree as t
from ottla.sql.analysis.inference import with_columns
from ottla.sql.catalog import Catalog, Change, Settings
from ottla.sql.errors import SqlError
from ottla.sql.lexer import MAX_TEXT, Piece, pieces, substituted
from ottla.sql.parser import parse_piece

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry


_SUBSTITUTION: Final = "ksql.variable.substitution.enable"


@dataclass(slots=True)
class Session:
    """What SET and DEFINE leave behind for the statements that follow."""

    catalog: Catalog = field(default_factory=Catalog)
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    position: int = 0
    """In the log of statements."""
    registry: "Registry | None" = None

    def statements(self, text: str) -> "Iterator[tuple[t.Statement, str]]":
        """Each is parsed when those before it have been done: variables may come from them."""
        left = MAX_TEXT
        for piece in pieces(text):
            try:
                changed = Piece(self.replaced(piece.text, left), piece.at)
            except SqlError as error:
                raise error.of(piece.text) from None
            left -= len(changed.text)
            yield parse_piece(changed), changed.text

    def replaced(self, text: str, most: int = MAX_TEXT) -> str:
        """With variables in their places, unless that is switched off. Raises SqlError."""
        switch = self.properties.get(_SUBSTITUTION, self.catalog.defaults.get(_SUBSTITUTION, "true"))
        return text if switch.lower() == "false" else substituted(text, self.variables, most)

    def longest(self, text: str) -> int:
        """Characters that it has at most with its variables."""
        return len(text) + text.count("${") * max(map(len, self.variables.values()), default=0)

    def set(self, statement: t.Statement) -> bool:
        """Whether it was a statement about the session itself, which is done now."""
        match statement:
            case t.SetProperty(name=name, value=value, system=False):
                self.properties[name] = value
            case t.UnsetProperty(name=name):
                self.properties.pop(name, None)
            case t.Define(name=name, value=value):
                self.variables[name] = value
            case t.Undefine(name=name):
                self.variables.pop(name, None)
            case _:
                return False
        return True

    def change(self, statement: t.Statement, text: str, given: Mapping[str, object]) -> list[Change]:
        """Decided and replayed. `given` are properties that are there besides those that were set."""
        settings = Settings.of({**given, **self.catalog.defaults, **self.properties})
        if isinstance(statement, t.CreateSource):
            try:
                statement = with_columns(statement, self.registry, settings.formats)
            except SqlError as error:
                raise error.of(text) from None
        changes = self.catalog.decide(statement, text, self.position, settings)
        for change in changes:
            self.catalog.replay(change)
        self.position += 1
        return changes
