"""The schema registry: Confluent's REST API over the compacted topic `_schemas`.

Theory of operation. `machine` is a core over that topic: it decides what a request means (ids, versions, modes,
compatibility) and gives the records to be written; replaying the topic is the only thing that changes it, and how it
comes back after a restart. `schemas/` knows the three languages, each behind `schemas.base.Language`: parsing,
canonical and normalised text, whether one schema can read what was written with another. `journal` reads and writes the
topic, and makes sure that one registry writes at a time; `runner` puts the two together: decide, write, replay, reply.
`api` is Confluent's REST over it, `service` what can be started and stopped. `lookup` is what serdes ask of a registry,
`client` asks one over HTTP.
"""
