"""The registry as a state machine over `_schemas`. No loop, no clock, no disk.

Theory of operation. `machine.Machine.decide` takes a command (`commands`) and gives the records to be written
(`records`) and the reply; it changes nothing. `replay` takes each record of the topic, in order, and is the only thing
that changes `state`; so a restart, a follower and the leader all come to the same answers. Each concern has its file:
`registering`, `deleting`, `config`, `modes`, `contexts`, `compatibility`, `rules` (metadata and rule sets), `ids` and
`guids`, `versions`; `lookups` has the questions. `parsing` keeps the languages and what they parsed; a schema that only
lies in the topic is never parsed before somebody needs it.

Who refuses raises `refusals.Refusal`, with Confluent's code and words; `decide` gives it as the reply.
"""
