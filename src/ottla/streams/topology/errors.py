"""Apart from `graph`: who catches it need not have imported all that a topology is made of."""


class TopologyError(Exception):
    """A topology that cannot be: the text says which node, store or topic and why."""
