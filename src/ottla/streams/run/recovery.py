"""What a query that starts has of its state: a checkpoint that fits the group's offsets, changelogs, or nothing.

With a checkpoint Spark goes on from there, if it fits: its last batch ends where the group is. Where the group is ahead
on every input another instance has gone on since, so the checkpoint is old: it is set aside, as Kafka Streams wipes
its state after an unclean end. Any other difference was made by somebody's hand, and is refused.
Without a checkpoint the state comes from the changelogs (`changelogs`), if something is in them.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ottla.client.blocking.cluster import Cluster
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets, offset_of
from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import batches_of
from ottla.pipelines.files import delete, keep_text, kept_text, move, names_in
from ottla.pipelines.job import CannotStart
from ottla.streams.plan.plan import Plan, QueryPlan
from ottla.streams.run import topics
from ottla.streams.run.changed_inputs import last_ends, written_without
from ottla.streams.run.changelogs import Note, Span
from ottla.streams.run.state_directory import NOTE, StateDirectory
from ottla.streams.tasks.offset_metadata import READ, decode
from ottla.streams.tasks.operators.aggregates import FOLD_SUFFIX
from ottla.streams.tasks.store_maker import backend_names
from ottla.streams.topology.graph import SubTopology, changelog_topic, decorated
from ottla.streams.topology.stores import StoreSpec

logger = logging.getLogger(__name__)

SET_ASIDE: Final = ".old"


class DoesNotFit(CannotStart):
    """A checkpoint and the offsets of its group cannot both be right."""


def restored_stores(directory: StateDirectory) -> frozenset[str]:
    """Those that came from changelogs when a query began that goes on now."""
    folder = f"{directory.path}/checkpoints"
    notes = [kept_text(f"{folder}/{name}") for name in sorted(names_in(folder)) if name.endswith(NOTE)]
    return frozenset(store for text in notes if text is not None for store in Note.from_json(text).stores)


def seen_without_spark(directory: StateDirectory) -> frozenset[str]:
    """`restored_stores` in a folder. With a URL only a start can tell."""
    return restored_stores(directory) if directory.is_local else frozenset()


class Recovery:
    """Of one application that is about to start: nobody else runs it."""

    def __init__(
        self,
        cluster: Cluster,
        application_id: str,
        directory: StateDirectory,
        inputs: topics.Inputs,
        subs: Sequence[SubTopology],
    ) -> None:
        self._cluster = cluster
        self._application_id = application_id
        self._directory = directory
        self._states = frozenset(name for sub in subs for name in backend_names(sub))
        self._inputs = inputs

    def notes(self, plan: Plan, made: frozenset[str]) -> dict[str, Note]:
        """For each query that was restored once, or is to be now, from what. `made` are changelogs that were missing.
        Raises CannotStart."""
        found = {query.name: self._note(query, made) for query in plan.queries}
        return {query: note for query, note in found.items() if note is not None and note.spans}

    def _note(self, query: QueryPlan, made: frozenset[str]) -> Note | None:
        inputs = self._places(query)
        self._check(query, inputs)
        if batches_of(self._directory.checkpoint(query.name)).begun is not None:
            text = kept_text(self._directory.note(query.name))
            return None if text is None else Note.from_json(text)
        self._forget(query.name)
        old = {
            store.name: topic
            for store in query.stores
            if (topic := changelog_of(self._application_id, store)) is not None and topic not in made
        }
        reused = {store.source_topic for store in query.stores if store.source_topic is not None}
        spans = self._spans([topic for topic in old.values() if topic not in reused], self._tasks(query))
        spans |= self._read_so_far(sorted(reused))
        note = Note(
            old, {place: span for place, span in spans.items() if span.end > span.start}, self._metadata(inputs)
        )
        if note.spans:
            _require_restorable(self._states, note)
            delete(self._directory.shape)  # what is restored may be kept in another way than before
            keep_text(self._directory.note(query.name), note.to_json())
        return note

    def _places(self, query: QueryPlan) -> list[TopicPartition]:
        names = {
            decorated(self._application_id, topic) if topic in self._inputs.internal else topic: topic
            for source in query.sources
            for topic in self._inputs.of(source)
        }
        return [TopicPartition(real, n) for real, topic in names.items() for n in range(self._inputs.partitions[topic])]

    def _tasks(self, query: QueryPlan) -> int:
        if query.aggregate is not None and query.aggregate.repartitioned is not None:
            return self._inputs.partitions[query.aggregate.repartitioned]
        return self._inputs.tasks(query.first.sub)

    def _forget(self, query: str) -> None:
        """What is left of a checkpoint that is gone: where it began, and what its tasks carried."""
        for path in (self._directory.note(query), self._directory.initial_offsets(query)):
            delete(path)
        if self._directory.is_local:
            shutil.rmtree(self._directory.stream_time(query), ignore_errors=True)

    def _spans(self, changelogs: Sequence[str], tasks: int) -> dict[TopicPartition, Span]:
        places = [TopicPartition(topic, number) for topic in changelogs for number in range(tasks)]
        if not places:
            return {}
        topics.await_decided(self._cluster, places)
        return self._bounds(places)

    def _bounds(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, Span]:
        starts = list_offsets(self._cluster, dict.fromkeys(places, EARLIEST))
        ends = list_offsets(self._cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
        return {place: Span(offset_of(starts[place]), offset_of(ends[place])) for place in places}

    def _read_so_far(self, reused: Sequence[str]) -> dict[TopicPartition, Span]:
        """A table's own topic is its changelog up to where the group has read it; what follows is still to come. Others
        write it, so nobody waits for the end of their transactions: what was read is behind those that have ended."""
        places = [TopicPartition(topic, number) for topic in reused for number in range(self._inputs.partitions[topic])]
        found = topics.committed(self._cluster, self._application_id, places) if places else {}
        read = {place: found[place].offset for place in places if place in found}
        return {place: read_so_far(span, read[place]) for place, span in self._bounds(list(read)).items()}

    def _metadata(self, inputs: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        return {
            place: found.metadata
            for place, found in topics.committed(self._cluster, self._application_id, inputs).items()
            if found.metadata
        }

    def _check(self, query: QueryPlan, inputs: Sequence[TopicPartition]) -> None:
        """Raises DoesNotFit. Sets aside a checkpoint that is older than the group."""
        checkpoint = self._directory.checkpoint(query.name)
        ends = last_ends(checkpoint)
        read = frozenset(inputs)
        if not ends:
            return
        known = frozenset(place for end in ends for place in end)
        if not query.keeps_state and not known & read:
            return  # it reads other topics than before, and begins where the group is
        asked = known | read if len(ends) > 1 or not known & read else read
        found = topics.committed(self._cluster, self._application_id, sorted(asked))
        # What was read and waits for other inputs is behind the group's offset, but in the checkpoint.
        reached = {place: decode(each.metadata).numbers.get(READ, each.offset) for place, each in found.items()}
        # Of what is read no more another query may have read on; it tells only where nothing else does.
        compared = known & read or known
        committed = {place: offset for place, offset in reached.items() if place in compared}
        if not committed or any(_fits(committed, end) for end in ends):
            self._require_known(query, written_without(ends, reached, read))
            return
        newest = ends[0]
        where = next(place for place, offset in committed.items() if newest.get(place, offset) != offset)
        told = (
            f"{self._application_id}: the checkpoint {checkpoint} is at offset {newest[where]} of {where}, "
            f"but the group {self._application_id} is at {committed[where]}"
        )
        if all(committed[place] >= newest.get(place, 0) for place in committed):
            self._set_aside(checkpoint, told)
            return
        raise DoesNotFit(
            f"{told}: its offsets were moved, or the state is another one's. To go on from the group's offsets with "
            f"the state of the changelogs, delete {checkpoint}; to begin anew, `ottla streams reset`; or move the "
            "offsets back"
        )

    def _require_known(self, query: QueryPlan, missing: Sequence[str]) -> None:
        if query.keeps_state and missing:
            raise DoesNotFit(
                f"{self._application_id}: the last batch of query {query.name} is out, but its state was not finished, "
                f"and needs {', '.join(missing)}, which is not read any more. Run the version that read it once more "
                "(`ottla streams run --once`), then this one"
            )

    def _set_aside(self, checkpoint: str, told: str) -> None:
        logger.warning("%s: another instance has gone on since; the state comes from the changelogs", told)
        move(checkpoint, f"{checkpoint}{SET_ASIDE}")


def changelog_of(application_id: str, store: StoreSpec) -> str | None:
    """The topic from which the store can be filled again; None if there is none."""
    if store.source_topic is not None:
        return store.source_topic
    return changelog_topic(application_id, store.name) if store.logged else None


def read_so_far(there: Span, committed: int) -> Span:
    return Span(there.start, max(there.start, min(committed, there.end)))


def _fits(committed: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> bool:
    """What the group has never committed, and partitions that are new, say nothing."""
    return all(committed[place] == offset for place, offset in end.items() if place in committed)


def _require_restorable(states: Collection[str], note: Note) -> None:
    """Raises CannotStart for an aggregate whose results do not tell its state. `states` are all maps of the tasks."""
    for store in note.stores:
        if store + FOLD_SUFFIX in states:
            raise CannotStart(
                f"the state of the store {store} is gone, and cannot be restored: its changelog "
                f"{note.changelogs[store]} holds results that do not tell it, as an average does not tell how many "
                "values it is of. Put the folder of state.dir back, or begin anew by `ottla streams reset`"
            )
