"""From what lost state comes back."""

import pytest

from ottla.streams.run.changelogs import Span
from ottla.streams.run.recovery import changelog_of, read_so_far
from ottla.streams.topology.stores import StoreKind, StoreSpec


@pytest.mark.parametrize(
    ("logged", "source_topic", "changelog"),
    [(True, None, "app-kept-changelog"), (False, "cities", "cities"), (True, "cities", "cities"), (False, None, None)],
    ids=["a changelog of its own", "a topic that is read", "whatever else is said", "nothing"],
)
def test_a_store_comes_back_from_its_changelog_or_from_the_topic_that_it_is_made_of(
    logged: bool, source_topic: str | None, changelog: str | None
) -> None:
    store = StoreSpec("kept", StoreKind.KEY_VALUE, logged=logged, source_topic=source_topic)
    assert changelog_of("app", store) == changelog


@pytest.mark.parametrize(
    ("there", "committed", "span"),
    [
        (Span(0, 100), 70, Span(0, 70)),
        (Span(40, 100), 70, Span(40, 70)),
        (Span(90, 100), 70, Span(90, 90)),
        (Span(0, 50), 70, Span(0, 50)),
    ],
    ids=["what follows is still to come", "retention took the first", "retention took all", "the topic is shorter"],
)
def test_a_topic_that_is_read_is_the_changelog_up_to_where_it_was_read(there: Span, committed: int, span: Span) -> None:
    assert read_so_far(there, committed) == span
