"""Connect's REST API, a file for each family of calls; each gives its rows of the table of routes.

What they share is the `desk`: it judges configs, submits commands, and takes what only the leader may decide to the
leader, signed. `replies` says how things look as JSON, `bodies` what is read. Everything else (media types, limits,
HEAD, bodies of errors) is done by the room `ottla.http`.
"""
