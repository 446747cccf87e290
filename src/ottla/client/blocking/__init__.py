"""The blocking face of the client, for the command line and for Spark's tasks: `cluster` runs steps, one at a time."""
