"""Tables of a database as topics, and topics as tables: PostgreSQL, MariaDB and MySQL, SQLite.

`urls` reads a `jdbc:` address, `database` is one connection to what it names: `adbc` to PostgreSQL and SQLite, `mysql`
to MariaDB and MySQL; `dialects` has what each of them calls a type and how it spells what differs.

`source` reads: `passes` goes through a whole table, `holes`, `late` and `windows` are positions that do not lose what
is committed late, `columns` makes of an answer what goes to a topic. `sink` writes: `rows` says of which table and
columns a record is, `tables` what a table looks like and how it is made or widened, `ledger` which offsets are in the
database, in the same transaction as what they brought.

Keys are Confluent's and Aiven's; Debezium's names for the same are taken too (`config`).
"""
