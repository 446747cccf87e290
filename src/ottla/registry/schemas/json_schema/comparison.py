"""Whether a reader's shape reads what was written by a writer's.

Theory of operation. Rules turn a pair of shapes into findings, some of which name other pairs (`findings`). All pairs
that can be reached from the first are found, each once, and all count as readable; then every pair whose findings say
otherwise is taken out, and whoever named it is looked at again, until nothing changes. That is the largest set of
verdicts that agree with each other, so that a recursive schema is readable unless a difference is really found, and
2^20 paths through oneOf and $ref cost as much as the few pairs they lead through. Only then are differences told, along
the paths that lead to them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from ottla.registry.schemas.base import Budget, Policy
from ottla.registry.schemas.json_schema.differences import is_allowed
from ottla.registry.schemas.json_schema.findings import Covered, Finding, Found, Inner, Matched, OneOf, Pair, Verdict
from ottla.registry.schemas.json_schema.matching import largest_matching
from ottla.registry.schemas.json_schema.rules import findings_of

MAX_TOLD: Final = 100
"""Differences that are told; there may be as many as there are paths."""
MAX_TOLD_AGAIN: Final = 8
"""How often one pair is told about, at different paths."""

STEPS_OF_A_PAIR: Final = 10
"""Measured: two shapes are made, at about 15 µs each."""
STEPS_OF_A_FINDING: Final = 2

Way: TypeAlias = "tuple[Way | None, str]"
"""To a pair, from its end: there may be thousands of steps, and most ways are never told."""
_START: Final[Way] = (None, "")


@dataclass(frozen=True, slots=True)
class Told:
    code: str
    path: str
    is_allowed: bool


@dataclass(slots=True)
class Comparison:
    policy: Policy
    budget: Budget
    _pairs: dict[Pair, tuple[Finding, ...]] = field(default_factory=dict)
    _unreadable: set[Pair] = field(default_factory=set)
    _all_tried: set[Matched] = field(default_factory=set)
    """Unions for which the likely partners were not enough."""

    def reads(self, root: Pair) -> bool:
        while True:
            self._discover(root)
            self._settle()
            if root not in self._unreadable or not (unmatched := self._unmatched()):
                return root not in self._unreadable
            # With more partners to choose from, more may be readable: what was found so far is found again.
            self._all_tried.update(unmatched)
            self._unreadable.clear()

    def _unmatched(self) -> list[Matched]:
        return [
            finding
            for pair, findings in self._pairs.items()
            if pair in self._unreadable
            for finding in findings
            if isinstance(finding, Matched) and finding not in self._all_tried and not self._holds(finding)
        ]

    def _discover(self, root: Pair) -> None:
        todo, seen = [root], {root}
        for pair in todo:
            findings = self._pairs.get(pair)
            if findings is None:
                same_kind = type(pair[0]) is type(pair[1])
                self.budget.spend(STEPS_OF_A_PAIR if same_kind else STEPS_OF_A_FINDING)
                findings = self._pairs[pair] = findings_of(*pair, self.budget)
            self.budget.spend(STEPS_OF_A_FINDING * len(findings))
            for finding in findings:
                for inner in self._named_by(finding):
                    self.budget.spend()
                    if inner not in seen:
                        seen.add(inner)
                        todo.append(inner)

    def _named_by(self, finding: Finding) -> Iterator[Pair]:
        match finding:
            case Found():
                return
            case Inner() | Covered() | Verdict():
                yield finding.pair
            case OneOf():
                yield from finding.pairs
                for other in finding.otherwise:
                    yield from self._named_by(other)
            case Matched():
                for writer, readers in enumerate(self._candidates(finding)):
                    for reader in readers:
                        yield finding.pair(writer, reader)

    def _settle(self) -> None:
        order = {pair: index for index, pair in enumerate(self._pairs)}
        pairs = list(self._pairs)
        named_by: dict[Pair, list[int]] = {pair: [] for pair in pairs}
        for pair, findings in self._pairs.items():
            for finding in findings:
                for inner in self._named_by(finding):
                    named_by[inner].append(order[pair])
                    self.budget.spend()
        # Inner pairs were mostly found later: from the end, so that a pair is looked at when its inner ones are done.
        queue = [-index for index in range(len(pairs))]
        heapify(queue)
        waiting = set(range(len(pairs)))
        while queue:
            index = -heappop(queue)
            waiting.discard(index)
            pair = pairs[index]
            self.budget.spend(len(self._pairs[pair]))
            if pair in self._unreadable or all(self._holds(finding) for finding in self._pairs[pair]):
                continue
            self._unreadable.add(pair)
            for outer in named_by[pair]:
                if outer not in waiting and pairs[outer] not in self._unreadable:
                    waiting.add(outer)
                    heappush(queue, -outer)

    def _holds(self, finding: Finding) -> bool:
        match finding:
            case Found():
                return is_allowed(finding.code, self.policy)
            case Inner() | Covered():
                return finding.pair not in self._unreadable
            case Verdict():
                return is_allowed(self._verdict(finding), self.policy)
            case OneOf():
                return self._first_readable(finding) is not None or all(self._holds(each) for each in finding.otherwise)
            case Matched():
                return len(self._matching(finding)) == _fewer(finding)

    def _verdict(self, finding: Verdict) -> str:
        return finding.unreadable if finding.pair in self._unreadable else finding.readable

    def _first_readable(self, finding: OneOf) -> Pair | None:
        return next((pair for pair in finding.pairs if pair not in self._unreadable), None)

    def _matching(self, finding: Matched) -> dict[int, int]:
        candidates = self._candidates(finding)
        self.budget.spend(sum(map(len, candidates)))
        edges = [
            [reader for reader in readers if finding.pair(writer, reader) not in self._unreadable]
            for writer, readers in enumerate(candidates)
        ]
        return largest_matching(edges, self.budget)

    def _candidates(self, finding: Matched) -> Sequence[Sequence[int]]:
        if finding not in self._all_tried:
            return finding.likely
        return (range(len(finding.readers)),) * len(finding.writers)

    def told(self, root: Pair, *, all_of_them: bool = False) -> list[Told]:
        """The differences of a pair that `reads` was asked about: those that make it unreadable, or all of them."""
        told: dict[Told, None] = {}
        times: dict[Pair, int] = {}
        on_the_path: set[Pair] = set()
        todo: list[tuple[Way | None, Pair | Found]] = [(_START, root)]
        while todo and len(told) < MAX_TOLD:
            path, item = todo.pop()
            if isinstance(item, Found):
                allowed = is_allowed(item.code, self.policy)
                if all_of_them or not allowed:
                    told[Told(item.code, _path((path, item.path)), allowed)] = None
                continue
            if path is None:
                on_the_path.remove(item)
                continue
            times[item] = times.get(item, 0) + 1
            unwanted = not all_of_them and item not in self._unreadable
            if item in on_the_path or unwanted or times[item] > MAX_TOLD_AGAIN:
                continue
            on_the_path.add(item)
            todo.append((None, item))
            opened = [each for finding in self._pairs[item] for each in self._opened(finding)]
            todo.extend(((path, way), inner) for way, inner in reversed(opened))
        return list(told)

    def _opened(self, finding: Finding) -> Iterator[tuple[str, "Pair | Found"]]:
        """What there is to tell of a finding: differences, and inner pairs with the way to them."""
        match finding:
            case Found():
                yield "", finding
            case Inner():
                yield finding.path, finding.pair
            case Covered():
                yield finding.path, finding.pair
                code = finding.unreadable if finding.pair in self._unreadable else finding.readable
                yield "", Found(code, finding.path)
            case Verdict():
                yield "", Found(self._verdict(finding), finding.path)
            case OneOf():
                readable = self._first_readable(finding)
                if readable is None:
                    for other in finding.otherwise:
                        yield from self._opened(other)
                else:
                    yield "", readable
                    if finding.code is not None:
                        yield "", Found(finding.code, "")
            case Matched():
                partners = self._matching(finding)
                for left, right in partners.items():
                    yield f"{finding.keyword}/{left}", finding.pair(left, right)
                if len(partners) < _fewer(finding):
                    yield "", Found(finding.code, "")


def _fewer(finding: Matched) -> int:
    return min(len(finding.writers), len(finding.readers))


def _path(way: Way) -> str:
    steps = []
    rest: Way | None = way
    while rest is not None:
        rest, step = rest
        if step:
            steps.append(step)
    return "#/" + "/".join(reversed(steps))
