"""Tables of a database as topics, and topics as tables: PostgreSQL, MariaDB and MySQL, SQLite.

`urls` reads a `jdbc:` address, `database` is one connection to what it names, by Arrow (ADBC) where there is a driver;
`dialects` has what each of them calls a type and how it spells an upsert. `source` reads, `sink` writes: `rows` says of
which table and columns a record is, `tables` what a table looks like and how it is made or widened, `ledger` which
offsets are in the database, in the same transaction as what they brought.

Keys are Confluent's and Aiven's; Debezium's names for the same are taken too (`config`).
"""
