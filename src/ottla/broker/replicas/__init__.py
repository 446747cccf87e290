"""The partitions on this node: made, led, followed and told of."""
