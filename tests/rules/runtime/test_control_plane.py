"""The control plane over its disk: first start, restart, crashes, full and failing disks, snapshots."""

import asyncio
from random import Random

import pytest

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import uuid_text
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.raft.snapshots import decode_snapshot
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.formatting import FormatError
from ottla.runtime.metadata_log import MetadataLogError
from ottla.storage.checkpoints import decode_meta_properties
from ottla.storage.fs import StorageError
from ottla.storage.reading import batches_of
from ottla.testing.disk import Crashed, SimDisk
from tests.rules.runtime.scene import LOG, create, dynamic, image_on, opened, registered, run, settings, started
from tests.support.examples import THOROUGH

BOTH = pytest.mark.parametrize("configured", [settings(), dynamic()], ids=["static", "dynamic"])


def facts(image: MetadataImage) -> tuple[object, ...]:
    """What a restart must bring back; registrations and leader epochs are new each time."""
    topics = {t.name: (t.id, sorted(t.partitions)) for t in image.topics.values()}
    return image.features, topics, image.configs, image.next_producer_id


# Formatting


@BOTH
def test_the_first_start_formats_the_directory_as_kafkas_tool_does(configured: Settings) -> None:
    disk = SimDisk()
    plane = opened(disk, configured)
    meta = decode_meta_properties(disk.read("/data/meta.properties"))
    assert (meta.cluster_id, meta.node_id) == (plane.identity.cluster_id, 1)
    assert meta.directory_id == plane.identity.directory_ids["/data"]
    bootstrap = decode_snapshot(disk.read("/data/bootstrap.checkpoint"))
    assert repr(bootstrap.records[0]) == "FeatureLevelRecord(name='metadata.version', feature_level=30)"
    assert (len(bootstrap.records), bootstrap.kraft_version) == (4, 0)
    checkpoint = f"{LOG}/00000000000000000000-0000000000.checkpoint"
    if configured.voters:
        assert not disk.exists(checkpoint)
    else:
        voters = decode_snapshot(disk.read(checkpoint))
        assert voters.kraft_version == 1
        assert voters.voters is not None
        assert [(v.id, v.directory_id) for v in voters.voters.voters] == [(1, meta.directory_id)]


def test_the_cluster_id_may_be_given_and_is_kept() -> None:
    disk = SimDisk()
    assert opened(disk, settings(cluster_id="my-own-cluster-id-0000")).identity.cluster_id == "my-own-cluster-id-0000"
    assert opened(disk).image.cluster_id == "my-own-cluster-id-0000"
    with pytest.raises(FormatError, match="my-own-cluster-id-0000"):
        opened(disk, settings(cluster_id="another-cluster-id-000"))


def test_a_directory_of_another_node_is_refused() -> None:
    disk = SimDisk()
    opened(disk)
    with pytest.raises(FormatError, match="belongs to node 1"):
        opened(disk, settings(node_id="2", controller_quorum_voters="2@127.0.0.1:9093"))


def test_a_new_directory_joins_and_a_copied_one_is_refused() -> None:
    disk = SimDisk()
    first = opened(disk)
    both = settings(log_dirs="/data,/more")
    joined = opened(disk, both, ids=5000).identity
    assert joined.directory_ids["/data"] == first.identity.directory_ids["/data"]
    assert list(joined.directory_ids) == ["/data", "/more"]
    disk.open("/more/meta.properties").truncate(0)
    disk.open("/more/meta.properties").pwrite(disk.read("/data/meta.properties"), 0)
    with pytest.raises(FormatError, match="copy"):
        opened(disk, both)


def test_a_metadata_log_without_meta_properties_is_not_formatted_over() -> None:
    disk = SimDisk()
    run(lambda: started(disk))
    disk.remove("/data/meta.properties")
    with pytest.raises(FormatError, match=r"no meta\.properties"):
        opened(disk)


def test_nodes_that_name_the_same_quorum_agree_on_the_clusters_id() -> None:
    voters = "1@127.0.0.1:9093,2@127.0.0.1:9095"
    ids = [
        opened(SimDisk(), settings(controller_quorum_voters=named), ids=n).identity.cluster_id
        for n, named in enumerate((voters, voters, voters.replace("9095", "9097")))
    ]
    assert ids[0] == ids[1] != ids[2]


def test_another_disk_in_place_of_a_voters_is_noticed() -> None:
    disk = SimDisk()
    configured = dynamic()
    plane = opened(disk, configured)
    known = uuid_text(plane.identity.metadata_directory_id)
    text = disk.read("/data/meta.properties").replace(known.encode(), uuid_text(bytes(15) + b"x").encode())
    disk.open("/data/meta.properties").pwrite(text, 0)
    with pytest.raises(MetadataLogError, match=known):
        opened(disk, configured)


# Living


@BOTH
def test_a_restart_finds_all_that_was_answered(configured: Settings) -> None:
    async def main() -> None:
        disk = SimDisk()
        plane = await started(disk, configured)
        await create(plane, "orders", "payments")
        epoch = plane.image.brokers[1].epoch
        await plane.submit(messages.AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
        before, leader_epoch = facts(plane.image), plane.leader_epoch
        await plane.close()
        again = await started(disk, configured, ids=9000)
        assert facts(again.image) == before
        assert (again.leader_epoch, again.kraft_version) == (leader_epoch + 1, plane.kraft_version)
        assert [p.leader_epoch for p in again.image.topics["orders"].partitions.values()] == [1, 1]
        assert again.image.brokers[1].epoch > epoch

    asyncio.run(main())


def test_subscribers_see_each_change_before_its_answer() -> None:
    async def main() -> None:
        plane = await started(SimDisk())
        seen: list[tuple[list[str], MetadataImage]] = []

        def subscriber(delta: MetadataDelta, image: MetadataImage) -> None:
            seen.append((list(delta.created_topics), image))

        plane.subscribe(subscriber)
        await create(plane, "orders")
        assert [names for names, _ in seen] == [["orders"]]
        assert plane.image is seen[0][1]
        assert plane.finalized_features == plane.image.features

    asyncio.run(main())


def test_two_requests_at_once_are_decided_one_after_the_other() -> None:
    async def main() -> None:
        plane = await started(SimDisk())
        kind = messages.CreateTopicsRequest
        request = kind(topics=[kind.CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
        replies = await asyncio.gather(*(plane.submit(request) for _ in range(3)))
        assert sorted(r.topics[0].error_code for r in replies) == [0, 36, 36]

    asyncio.run(main())


def test_the_broker_is_fenced_when_the_node_stops() -> None:
    async def main() -> None:
        disk = SimDisk()
        plane, broker = await registered(disk)
        await broker.leave()
        await plane.close()
        assert image_on(disk).brokers[1].fenced

    asyncio.run(main())


# Trouble


def test_a_full_disk_refuses_the_change_and_leaves_the_controller_as_it_was() -> None:
    async def main() -> None:
        disk = SimDisk()
        plane = await started(disk)
        disk.room = disk.used + 20
        with pytest.raises(StorageError):
            await create(plane, "orders")
        assert plane.image.topics == {}
        disk.room = None
        await create(plane, "orders")  # the name is still free
        assert list(image_on(disk.killed()).topics) == ["orders"]

    asyncio.run(main())


def test_a_failed_fsync_answers_nobody_and_nothing_is_tried_again() -> None:
    async def main() -> None:
        disk = SimDisk()
        told: list[BaseException] = []
        plane = await started(disk, on_failure=told.append)
        disk.failing_sync = lambda path: path.endswith(".log")
        with pytest.raises(StorageError):
            await create(plane, "orders")
        assert told == [plane.failure]
        disk.failing_sync = lambda path: False
        assert plane.failure is not None
        with pytest.raises(StorageError):
            await create(plane, "payments")
        assert plane.image.topics == {}

    asyncio.run(main())


async def a_life(disk: SimDisk, configured: Settings, answered: list[str]) -> None:
    """Each name in `answered` was acknowledged before the power went."""
    for round_ in range(2):
        plane = await started(disk, configured, ids=1000 * (1 + round_))
        answered.append(f"round {round_}")
        for name in (f"a{round_}", f"b{round_}"):
            await create(plane, name)
            answered.append(name)
        take_snapshot(plane)
        await create(plane, f"c{round_}")
        answered.append(f"c{round_}")
        await plane.close()


def take_snapshot(plane: ControlPlane) -> None:
    plane._quorum._snapshots.take_if_changed()


def until_crash(disk: SimDisk, configured: Settings) -> list[str]:
    answered: list[str] = []
    try:
        asyncio.run(a_life(disk, configured, answered))
    except Crashed:
        return answered
    return answered


@BOTH
def test_a_crash_at_any_step_loses_nothing_that_was_answered(configured: Settings) -> None:
    whole = SimDisk()
    until_crash(whole, configured)
    for step in range(len(whole.steps)):
        disk = SimDisk(crash_at=step)
        answered = until_crash(disk, configured)
        for seed in (1, 2, 3) if THOROUGH else (step % 3 + 1,):
            survivor = disk.crash(Random(step * 10 + seed))
            plane = asyncio.run(started(survivor, configured, ids=50_000))
            expected = {name for name in answered if not name.startswith("round")}
            missing = expected - set(plane.image.topics)
            assert not missing, f"{missing} lost by a crash before step {step}: {whole.steps[step]}"


# Damage


def overwritten(disk: SimDisk, path: str, content: bytes) -> None:
    file = disk.open(path)
    file.truncate(0)
    file.pwrite(content, 0)


async def stopped_with_topics(disk: SimDisk, configured: Settings, *, snapshot: bool = False) -> None:
    plane = await started(disk, configured)
    await create(plane, "orders", "payments")
    if snapshot:
        take_snapshot(plane)
    await create(plane, "later")
    await plane.close()


def segment(disk: SimDisk) -> str:
    (found,) = [entry.name for entry in disk.list(LOG) if entry.name.endswith(".log")]
    return f"{LOG}/{found}"


@BOTH
@pytest.mark.parametrize("left", ["half of it", "nothing", "not even the file"])
def test_a_quorum_of_one_that_has_lost_metadata_does_not_start_however_often_it_tries(
    configured: Settings, left: str
) -> None:
    disk = SimDisk()
    run(lambda: stopped_with_topics(disk, configured))
    content = disk.read(segment(disk))
    if left == "not even the file":
        disk.remove(segment(disk))
    else:
        overwritten(disk, segment(disk), content[: len(content) // 2 if left == "half of it" else 0])
    for _ in range(2):
        with pytest.raises(MetadataLogError, match=r"metadata is lost\. Restore it from a backup"):
            opened(disk, configured)


@BOTH
def test_who_says_so_goes_on_with_what_is_left_of_the_metadata(configured: Settings) -> None:
    disk = SimDisk()
    run(lambda: stopped_with_topics(disk, configured))
    overwritten(disk, segment(disk), disk.read(segment(disk))[:-10])
    for entry in disk.list(LOG):
        if entry.name.endswith(".snapshot") or entry.name == "leader-epoch-checkpoint":
            disk.remove(f"{LOG}/{entry.name}")
    assert "orders" in run(lambda: started(disk, configured, ids=5000)).image.topics


def test_a_node_with_topics_and_without_any_metadata_does_not_begin_a_cluster_over_them() -> None:
    disk = SimDisk()
    run(lambda: stopped_with_topics(disk, settings()))
    for entry in disk.list(LOG):
        disk.remove(f"{LOG}/{entry.name}")
    disk.mkdir("/data/orders-0")
    with pytest.raises(MetadataLogError, match="is empty, and this node has had a cluster"):
        opened(disk)


def test_a_voter_among_others_may_begin_with_an_empty_log() -> None:
    disk = SimDisk()
    three = settings(controller_quorum_voters="1@127.0.0.1:9093,2@127.0.0.1:9095,3@127.0.0.1:9097")
    opened(disk, three)
    disk.mkdir("/data/orders-0")
    assert opened(disk, three).raft.metadata_log.end_offset == 0


@BOTH
def test_a_damaged_snapshot_is_named_with_what_to_do(configured: Settings) -> None:
    disk = SimDisk()
    run(lambda: stopped_with_topics(disk, configured, snapshot=True))
    newest = max(entry.name for entry in disk.list(LOG) if entry.name.endswith(".checkpoint"))
    overwritten(disk, f"{LOG}/{newest}", disk.read(f"{LOG}/{newest}")[:-10])
    with pytest.raises(MetadataLogError, match=rf"{LOG}/{newest} is damaged: .*\. Move the file away") as refused:
        opened(disk, configured)
    assert "older files have all that is in it" in str(refused.value)
    disk.remove(f"{LOG}/{newest}")
    assert set(image_on(disk, configured).topics) == {"orders", "payments", "later"}


def test_a_damaged_snapshot_that_nothing_can_replace_is_to_be_restored() -> None:
    disk = SimDisk()
    configured = dynamic()
    run(lambda: stopped_with_topics(disk, configured))
    overwritten(disk, f"{LOG}/00000000000000000000-0000000000.checkpoint", b"")
    with pytest.raises(MetadataLogError, match=r"0000000000\.checkpoint is damaged: .*\. Restore the file"):
        opened(disk, configured)


def test_a_damaged_quorum_state_is_named_with_what_to_do() -> None:
    disk = SimDisk()
    run(lambda: stopped_with_topics(disk, settings()))
    overwritten(disk, f"{LOG}/quorum-state", b"{")
    with pytest.raises(MetadataLogError, match=f"{LOG}/quorum-state is damaged: .* or remove it if this node is the"):
        opened(disk)
    disk.remove(f"{LOG}/quorum-state")
    assert set(run(lambda: started(disk, ids=5000)).image.topics) == {"orders", "payments", "later"}


def test_a_damaged_bootstrap_file_is_named_with_what_to_do() -> None:
    disk = SimDisk()
    opened(disk)
    overwritten(disk, "/data/bootstrap.checkpoint", b"junk")
    with pytest.raises(FormatError, match=r"/data/bootstrap\.checkpoint is damaged: .*\. Remove it"):
        run(lambda: started(disk))


# Snapshots


@BOTH
def test_a_snapshot_and_the_log_after_it_make_the_whole(configured: Settings) -> None:
    async def main() -> None:
        disk = SimDisk()
        plane = await started(disk, configured)
        await create(plane, "before")
        take_snapshot(plane)
        await create(plane, "after")
        offset = plane.image.offset
        again = image_on(disk.killed(), configured)
        assert list(again.topics) == ["before", "after"]
        assert facts(again) == facts(plane.image)
        assert again.offset == offset
        await plane.close()

    asyncio.run(main())


def test_a_snapshot_is_taken_after_so_many_bytes_and_old_files_go() -> None:
    async def main() -> None:
        disk = SimDisk()
        configured = settings(
            metadata_log_max_record_bytes_between_snapshots="3000", metadata_max_retention_bytes="8000"
        )
        plane = await started(disk, configured)
        for n in range(60):
            await create(plane, f"t{n}")
        names = sorted(e.name for e in disk.list(LOG) if e.name.endswith(".checkpoint"))
        assert 1 <= len(names) <= 3
        assert facts(image_on(disk.killed(), configured)) == facts(plane.image)

    asyncio.run(main())


def test_leftovers_of_an_interrupted_snapshot_are_removed() -> None:
    async def main() -> None:
        disk = SimDisk()
        plane = await started(disk)
        await create(plane, "t")
        stem = f"{LOG}/00000000000000000005-0000000001.checkpoint"
        for name in (stem + ".part", stem + ".deleted"):
            disk.open(name, create=True).pwrite(b"half", 0)
        assert list(image_on(disk).topics) == ["t"]
        assert not [e.name for e in disk.list(LOG) if ".checkpoint." in e.name]

    asyncio.run(main())


def test_a_transaction_that_was_never_ended_is_aborted_by_the_next_leader() -> None:
    async def main() -> None:
        disk = SimDisk()
        plane = await started(disk)
        log = plane.raft.metadata_log
        begin = messages.BeginTransactionRecord(name="half")
        log.append([begin, messages.TopicRecord(name="half", topic_id=bytes(15) + b"z")])
        log.log.flush()
        again = await started(disk.killed(), ids=5000)
        await create(again, "whole")
        assert list(again.image.topics) == ["whole"]
        await again.close()

    asyncio.run(main())


def test_ten_thousand_changes_go_into_batches_that_kafka_can_read() -> None:
    async def main() -> None:
        disk = SimDisk()
        plane = await started(disk)
        kind = messages.CreateTopicsRequest
        for n in range(3):
            topic = kind.CreatableTopic(name=f"t{n}", num_partitions=4000, replication_factor=1)
            await plane.submit(kind(topics=[topic]))
        await plane.close()
        again = await started(disk, ids=5000)  # 12,000 partitions are led again: more than one batch may hold
        epochs = {p.leader_epoch for t in again.image.topics.values() for p in t.partitions.values()}
        assert epochs == {1}
        batches = [bytes(batch[57:61]) for batch in batches_of(again.raft.metadata_log.log, 0)]
        assert max(int.from_bytes(count, "big") for count in batches) == 10_000

    asyncio.run(main())


def test_segments_below_a_snapshot_are_deleted_and_the_log_starts_there() -> None:
    async def main() -> None:
        disk = SimDisk()
        configured = settings(metadata_max_retention_bytes="0")
        plane = await started(disk, configured)
        for n in range(4):
            await create(plane, f"t{n}")
            plane.raft.metadata_log.log.roll(1_700_000_000_000)
            take_snapshot(plane)
        log = plane.raft.metadata_log.log
        assert log.segments[0].base_offset > 0
        assert [e.name for e in disk.list(LOG) if e.name.endswith((".deleted", ".part"))] == []
        assert facts(image_on(disk.killed(), configured)) == facts(plane.image)

    asyncio.run(main())


def test_a_log_that_begins_later_than_any_snapshot_reaches_is_refused() -> None:
    async def main() -> None:
        disk = SimDisk()
        configured = settings(metadata_max_retention_bytes="0")
        plane = await started(disk, configured)
        for n in range(3):
            await create(plane, f"t{n}")
            plane.raft.metadata_log.log.roll(1_700_000_000_000)
            take_snapshot(plane)
        dead = disk.killed()
        for entry in dead.list(LOG):
            if entry.name.endswith(".checkpoint"):
                dead.remove(f"{LOG}/{entry.name}")
        with pytest.raises(MetadataLogError, match="Restore"):
            opened(dead, configured)

    asyncio.run(main())


def test_the_vote_is_on_the_disk_before_the_epoch_has_a_record() -> None:
    disk = SimDisk()
    run(lambda: started(disk))
    steps = disk.steps
    voted = next(n for n, step in enumerate(steps) if step.startswith("rename") and "quorum-state" in step)
    synced = next(n for n, step in enumerate(steps) if n > voted and step == f"sync_dir {LOG}")
    appended = next(n for n, step in enumerate(steps) if step.startswith("pwrite") and step.endswith(".log"))
    assert steps[voted - 1] == f"sync {LOG}/quorum-state.tmp"
    assert voted < synced < appended


def test_a_subscriber_that_breaks_ends_the_control_plane_and_leaves_nobody_waiting() -> None:
    async def main() -> None:
        told: list[BaseException] = []
        plane = await started(SimDisk(), on_failure=told.append)

        def broken(delta: MetadataDelta, image: MetadataImage) -> None:
            raise ZeroDivisionError

        plane.subscribe(broken)
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(create(plane, "t"), 5)
        assert isinstance(plane.failure, ZeroDivisionError)
        assert [type(error) for error in told] == [ZeroDivisionError]

    asyncio.run(main())
