"""Avro, by schemas of a registry.

A record names the schema it was written with (`schema_ids`); `binary` reads its bytes with that schema, and `reading`
makes values of the serde's own schema of them, by Avro's rules of evolution. `writing` goes the other way. `types` says
which of our types each of Avro's is. Nothing heavy is imported before the first record.
"""

from ottla.serdes.avro.serde import AvroSerde

__all__ = ["AvroSerde"]
