"""Contexts: they come with their first subject, and go when nothing is left in them."""

from ottla.registry.machine import records, refusals
from ottla.registry.machine.commands import DeleteContext
from ottla.registry.machine.names import DEFAULT_CONTEXT, context_of
from ottla.registry.machine.records import Decision
from ottla.registry.machine.state import State


def all_contexts(state: State) -> list[str]:
    return [DEFAULT_CONTEXT, *state.known_contexts()]


def decide_delete(state: State, command: DeleteContext) -> Decision[None]:
    """Config and mode do not keep a context, and stay. One that nobody knows is deleted already."""
    context = command.context
    if any(context_of(name) == context for name in state.subjects):
        raise refusals.context_not_empty(context)
    if context not in state.contexts:
        return Decision(None)
    return Decision(None, (records.ContextGone(context),))
