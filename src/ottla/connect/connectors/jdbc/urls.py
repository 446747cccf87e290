"""Addresses: `jdbc:postgresql://host:5432/db?user=a`, `jdbc:mysql://…`, `jdbc:mariadb://…`, `jdbc:sqlite:file.db`."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from ottla.connect import spi

DialectName: TypeAlias = Literal["postgresql", "mysql", "sqlite"]

_DIALECTS: Final[dict[str, DialectName]] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlite": "sqlite",
}
_PATIENCE: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""libpq waits for ever for a server that takes a connection and says nothing, and two hours for one that vanished."""
_PORTS: Final = {"postgresql": 5432, "mysql": 3306, "sqlite": 0}


@dataclass(frozen=True, slots=True)
class Address:
    """What a connection needs. `options` are those behind the question mark."""

    dialect: DialectName
    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = ()

    def uri(self) -> str:
        """As libpq takes it."""
        user = quote(self.user, safe="")
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        who = f"{user}{secret}@" if self.user else ""
        options = "&".join(f"{quote(key)}={quote(value)}" for key, value in (_PATIENCE | dict(self.options)).items())
        return f"postgresql://{who}{self.host}:{self.port}/{quote(self.database)}?{options}"


def parse_url(url: str, user: str = "", password: str = "") -> Address:
    """Raises ConfigRefused."""
    bare = url.removeprefix("jdbc:")
    scheme = bare.partition(":")[0]
    dialect = _DIALECTS.get(scheme)
    if dialect is None:
        known = ", ".join(f"jdbc:{name}:" for name in _DIALECTS)
        raise spi.ConfigRefused("connection.url", f"begins with none of {known}")
    if dialect == "sqlite":
        path = bare.removeprefix("sqlite:").partition("?")[0]
        return Address(dialect, "", 0, path.removeprefix("//") if path.startswith("//") else path, "", "")
    parts = urlsplit(bare)
    try:
        port = parts.port or _PORTS[dialect]
    except ValueError as error:
        raise spi.ConfigRefused("connection.url", f"has no valid port: {error}") from error
    options = dict(parse_qsl(parts.query))
    named, secret = options.pop("user", ""), options.pop("password", "")
    return Address(
        dialect,
        parts.hostname or "localhost",
        port,
        unquote(parts.path.lstrip("/")),
        user or named or unquote(parts.username or ""),
        password or secret or unquote(parts.password or ""),
        tuple(options.items()),
    )
