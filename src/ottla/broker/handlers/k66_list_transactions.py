"""ListTransactions: the transactional ids kept here, by state, producer, age and name (KIP-664, KIP-994, KIP-1152).

Versions 0 to 2. 1 filters by age (KIP-994), 2 by name (KIP-1152).
"""

from collections.abc import Callable

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.coordinator.transaction.shard import ListFilter
from ottla.coordinator.transaction.states import BY_TITLE
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_TRANSACTIONAL_ID
from ottla.protocol.messages import ListTransactionsRequest, ListTransactionsResponse


def handle(
    services: Services, session: Session, request: ListTransactionsRequest, version: int
) -> ListTransactionsResponse:
    try:
        matches = _matcher(request.transactional_id_pattern)
    except ValueError:
        return ListTransactionsResponse(error_code=Errors.INVALID_REGULAR_EXPRESSION)
    unknown = [title for title in request.state_filters if title not in BY_TITLE]
    found = services.coordination.transactions.listed(
        ListFilter(
            tuple(request.state_filters), frozenset(request.producer_id_filters), request.duration_filter, matches
        )
    )
    if isinstance(found, Errors):
        return ListTransactionsResponse(error_code=found)
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=listed.transactional_id,
                producer_id=listed.producer_id,
                transaction_state=listed.state.title,
            )
            for listed in found
            if session.client.sees(*DESCRIBE_TRANSACTIONAL_ID, listed.transactional_id)
        ],
    )


def _matcher(pattern: str | None) -> Callable[[str], bool] | None:
    """Raises ValueError for what is no regular expression."""
    if not pattern:
        return None
    from ottla.coordinator.group.consumer.regex import matcher  # noqa: PLC0415  rarely asked for

    return matcher(pattern)
