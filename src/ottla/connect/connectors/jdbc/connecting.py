"""A connection to whatever an address names."""

from ottla.connect.connectors.jdbc.database import Database
from ottla.connect.connectors.jdbc.urls import Address


def connected(address: Address) -> Database:
    """Raises spi.TryAgain if nobody answers."""
    if address.dialect == "mysql":
        from ottla.connect.connectors.jdbc.mysql import MySQLDatabase  # noqa: PLC0415  few need it

        return MySQLDatabase(address)
    from ottla.connect.connectors.jdbc.adbc import AdbcDatabase  # noqa: PLC0415  few need it

    return AdbcDatabase(address)
