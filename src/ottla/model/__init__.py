"""What every room speaks of: ids, errors, ports, the shape of a core, and the settings.

The ground floor. Nothing here does anything: `ids` gives offsets, epochs, milliseconds and UUIDs types of their own,
so that one is not taken for the other; `errors` is Kafka's table of codes; `ports` are the few things that a core or
a runner asks of the world (time, ids), each with a simulated twin; `core` is the one shape that every state machine
of the house has. `properties` holds all settings, each declared once, of which validation, documentation and
DescribeConfigs are made. `patterns` is the only door for regular expressions that come from the network.
"""
