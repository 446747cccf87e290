"""A largest set of pairs of branches in which no branch stands twice: paths that let one more branch have a partner are
looked for until there are none. Steps are counted, so more need not be done about speed."""

from collections.abc import Sequence

from ottla.registry.schemas.base import Budget


def largest_matching(edges: Sequence[Sequence[int]], budget: Budget) -> dict[int, int]:
    """`edges[left]` are the rights that would do. Gives the right of each left that got one."""
    left_of: dict[int, int] = {}
    right_of: dict[int, int] = {}
    for left in range(len(edges)):
        _augment(left, edges, left_of, right_of, budget)
    return right_of


def _augment(
    left: int, edges: Sequence[Sequence[int]], left_of: dict[int, int], right_of: dict[int, int], budget: Budget
) -> None:
    reached_from: dict[int, int] = {}
    lefts = [left]
    for current in lefts:
        for right in edges[current]:
            budget.spend()
            if right in reached_from:
                continue
            reached_from[right] = current
            if right in left_of:
                lefts.append(left_of[right])
                continue
            free: int | None = right
            while free is not None:  # everybody on the way moves on to the next
                giver = reached_from[free]
                given_up = right_of.get(giver)
                left_of[free], right_of[giver] = giver, free
                free = given_up
            return
