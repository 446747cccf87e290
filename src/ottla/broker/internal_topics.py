"""The topics that the platform keeps its own state in (decision 8: real topics, Kafka's record formats)."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
