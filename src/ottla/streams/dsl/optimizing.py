"""`topology.optimization`: the steps of a builder with less between them, as Kafka's own rules have it.

- reuse.ktable.source.topics: the topic of a table is its changelog.
- merge.repartition.topics: behind a step that changes keys one repartition topic serves all, in place of one each.
- single.store.self.join: a stream joined with itself needs one buffer.

The draft stays as it is: rules change a copy, and a builder may be built again without them.
"""

from collections.abc import Callable, Collection

from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.steps import MergeStep, OperationStep, RepartitionStep, Step, StreamJoinStep, TableSourceStep
from ottla.streams.topology.operations import FlatMap, FlatMapValues, MapPairs, MapValues, SelectKey, UserProcessor
from ottla.streams.topology.optimization import MERGE_REPARTITIONS, REUSE_SOURCES, SINGLE_STORE_SELF_JOIN

_KEY_CHANGING = (SelectKey, MapPairs, FlatMap)
_VALUE_CHANGING = (MapValues, FlatMapValues)


def optimized(draft: Draft, rules: Collection[str]) -> Draft:
    copy = draft.copied()
    copy.merge_sources()
    if REUSE_SOURCES in rules:
        for step in copy.added:
            if isinstance(step, TableSourceStep):
                step.reuses_topic = True
    if MERGE_REPARTITIONS in rules:
        _merge_repartitions(copy)
    if SINGLE_STORE_SELF_JOIN in rules:
        for step in _reachable(copy.root):
            if isinstance(step, StreamJoinStep) and len(step.parents) == 1:
                _join_with_itself(step)
    return copy


def _changes_key(step: Step) -> bool:
    if not isinstance(step, OperationStep):
        return False
    operation = step.operation()
    return isinstance(operation, _KEY_CHANGING) or (isinstance(operation, UserProcessor) and not operation.fixed_key)


def _changes_value(step: Step) -> bool:
    return isinstance(step, OperationStep) and isinstance(step.operation(), (*_VALUE_CHANGING, UserProcessor))


def _above(step: Step, matches: Callable[[Step], bool]) -> Step | None:
    """The nearest that matches, itself first, then the parents one after the other, each with all above it."""
    if matches(step):
        return step
    for parent in step.parents:
        found = _above(parent, matches)
        if found is not None:
            return found
    return None


def _child_of(parent: Step) -> Callable[[Step], bool]:
    return lambda step: parent in step.parents


Merging = dict[Step, list[RepartitionStep]]
"""For each step that changes keys the repartitions that could be one right behind it."""


def _merge_repartitions(draft: Draft) -> None:
    for changer, repartitions in _mergeable(draft).items():
        if repartitions:
            _merge(draft, changer, repartitions)


def _mergeable(draft: Draft) -> Merging:
    found: Merging = {}
    merges: list[Step] = []
    for step in draft.added:
        if _changes_key(step):
            found[step] = []
        elif isinstance(step, RepartitionStep) and step.is_mergeable:
            changer = _key_changer(step)
            if changer is not None:
                found[changer].append(step)
        elif isinstance(step, MergeStep):
            merges.append(step)
    return _behind_merges(found, merges)


def _key_changer(step: RepartitionStep) -> Step | None:
    """None if values change after the key: they would have to be computed by whoever reads the topic."""
    nearest = _above(step, lambda each: _changes_key(each) or _changes_value(each))
    changer = _above(step, _changes_key)
    return changer if nearest is changer else None


def _behind_merges(found: Merging, merges: list[Step]) -> Merging:
    """Where streams with new keys are merged, the topic goes behind the merge."""
    taken: dict[Step, list[Step]] = {}
    for merge in merges:
        taken[merge] = [
            changer
            for changer, repartitions in found.items()
            if all(_above(each, _child_of(merge)) is not None for each in repartitions)
            and _above(merge, _child_of(changer)) is not None
        ]
    gone: list[Step] = []
    for merge, changers in taken.items():
        found[merge] = list(dict.fromkeys(each for changer in changers for each in found[changer]))
        gone += changers
    return {step: repartitions for step, repartitions in found.items() if step not in gone}


def _merge(draft: Draft, changer: Step, repartitions: list[RepartitionStep]) -> None:
    key_serde = next((each.key_serde for each in repartitions if each.key_serde is not None), None)
    value_serde = next((each.value_serde for each in repartitions if each.value_serde is not None), None)
    single = RepartitionStep(draft.repartition_names(repartitions[0].names.topic), key_serde, value_serde)
    single.priority = changer.priority
    for replaced in repartitions:
        child = _above(replaced, _child_of(changer))
        if child is not None:  # else a repartition before this one took it along
            single.attach(child)
            changer.detach(child)
        for below in list(replaced.children):
            for parent in list(replaced.parents):
                parent.attach(below)
        for parent in list(replaced.parents):
            parent.detach(replaced)
        for below in list(replaced.children):
            replaced.detach(below)
        draft.rename_source(replaced.name, single.name)
    changer.attach(single)


def _join_with_itself(join: StreamJoinStep) -> None:
    (parent,) = join.parents
    right = next(child for child in parent.children if child.name == join.windowed[1])
    parent.detach(right)
    join.is_self_join = True


def _reachable(root: Step) -> list[Step]:
    found = [root]
    for step in found:
        found += [child for child in step.children if child not in found]
    return found
