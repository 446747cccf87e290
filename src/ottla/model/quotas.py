"""Whose use is limited, and what of: the names that Kafka's client quotas have in requests, records and tools."""

from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

OF_CLIENTS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
"""Of users and client ids."""
OF_ADDRESSES: Final = (CONNECTION_CREATION_RATE,)
GREATEST_INTEGER: Final = {PRODUCER_BYTE_RATE: 2**63, CONSUMER_BYTE_RATE: 2**63, CONNECTION_CREATION_RATE: 2**31 - 1}
"""Of those that have no fraction."""
