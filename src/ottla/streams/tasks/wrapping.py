"""The serdes of internal topics whose values are wrapped (`graph.Form`)."""

from typing import Any

from ottla.serdes.base import Serde
from ottla.streams.tasks.change_serde import ChangeSerde
from ottla.streams.tasks.subscriptions import ResponseSerde, SubscriptionSerde
from ottla.streams.topology.graph import Form


def wrapped(serde: Serde[Any], form: Form) -> Serde[Any]:
    match form:
        case Form.PLAIN:
            return serde
        case Form.CHANGE:
            return ChangeSerde(serde)
        case Form.SUBSCRIPTION:
            return SubscriptionSerde(serde)
        case Form.RESPONSE:
            return ResponseSerde(serde)
