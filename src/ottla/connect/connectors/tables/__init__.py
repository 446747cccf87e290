"""Sinks into tables of a lake: Delta Lake and Iceberg, without a jar and without a server.

`rows` makes Arrow tables of records: columns by the records' schemas, or found out where there are none; a table that
is there already keeps its types and is given new columns; a record that does not fit is refused alone, with the field.
`keys` finds what a row is known by, for upserts. `delta` and `iceberg` commit rows. Each commit of a task carries the
offsets that it ends at, under the connector's name: records below them were written and are passed over, so that a
batch that comes again leaves every record there once.
"""
