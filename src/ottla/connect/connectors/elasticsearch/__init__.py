"""Sink into Elasticsearch and OpenSearch: one document for each record, written by `_bulk`.

`config` has the keys of Confluent's and Aiven's connectors, `documents` says what a record becomes (which index, which
id, which version, which JSON), `bulk` speaks HTTP and reads the verdict on each document, `sink` puts them together.

Delivery: documents have an id that depends on the record alone, and a record that is keyed carries its offset as the
document's external version. So a batch that comes again overwrites itself with the same, and what is older than what
is there is left out: exactly once, as seen by readers of the index.

A document that the index does not take (its mapping says otherwise) is a dead letter with the server's reason, and the
others of its batch are written.
"""
