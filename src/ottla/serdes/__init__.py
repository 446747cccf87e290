"""How keys and values lie in a topic, and what they are when they are read. Nothing here knows of Spark or of streams.

`types` says of which types values are, `values` what can be done with single ones (Spark's own rules, on plain Python
values), `decimals` and `dates` the same for theirs, `casts` how one type becomes another; `base` is what a serde is.
`primitives` and `json` are the serdes, and by schemas of a registry `avro/`, `json_schema` and `protobuf`; `by_name`
lists them. Those are given a registry (`registry.lookup.Registry`; `registry.client` is one) and learn from each record
which schema it has (`schema_ids`); what they share is `registered`.
`arrow` says what values of each type are in a column, `columns` makes whole columns for serdes that are Python code.
"""
