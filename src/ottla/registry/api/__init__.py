"""Confluent's REST API, a file for each family of resources; each gives its rows of the table of routes.

What they share is the `desk`: it asks the machine, and takes writes to whoever leads. Around them stands the
`envelope`: request ids, compressed answers, and `/contexts/{context}/…`, which is another way to write the names of
subjects. Everything else (media types, limits, HEAD, bodies of errors) is done by the room `ottla.http`.
"""
