"""From a statement to what it means: names, types, keys, formats. Without I/O; one rule, one file.

`refusals` makes the errors, `types` reads types, `properties` what stands in WITH (…), `sources` CREATE … (columns).
A query goes through `scope` (which names there are, and what each is as an expression), `expressions` (a tree with
types), `joins`, `grouping`, `projection` (what is selected, and what of it is the key), and comes out as a
`typed.TypedQuery` that `compile` tells to the DSL's builder without deciding anything more.
"""
