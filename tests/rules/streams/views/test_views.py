"""Views of stores: what a changelog makes of them, and what they answer."""

import struct
from contextlib import closing
from pathlib import Path

import pytest

from ottla.streams import (
    Consumed,
    Grouped,
    JoinWindows,
    Materialized,
    Serdes,
    StreamsApp,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from ottla.streams.topology.stores import StoreKind
from ottla.streams.views.lookups import NoSuchStore, QueryableStores, queryable
from ottla.streams.views.view import BadKey, Change, Entry, Page, Place, Slice, View, split_key

ID = bytes(16)


def windowed(key: bytes, start: int, sequence: int = 0) -> bytes:
    return key + struct.pack(">qi", start, sequence)


def session(key: bytes, start: int, end: int) -> bytes:
    return key + struct.pack(">qq", end, start)


def key_value(path: Path, *pairs: tuple[bytes, bytes | None]) -> View:
    view = View("counts", StoreKind.KEY_VALUE, path / "counts.sqlite")
    view.begin_with("app-counts-changelog", ID)
    view.apply([Change(0, key, value, 1) for key, value in pairs], {0: len(pairs)})
    return view


def keys(page: Page) -> list[bytes]:
    return [entry.place.key for entry in page.entries]


def starts(page: Page) -> list[int]:
    return [entry.place.first for entry in page.entries]


def test_a_changelog_key_is_taken_apart_by_the_kind_of_its_store() -> None:
    assert split_key(StoreKind.KEY_VALUE, b"k") == (b"k", 0, 0)
    assert split_key(StoreKind.WINDOW, windowed(b"k", 5000, 3)) == (b"k", 5000, 3)
    assert split_key(StoreKind.SESSION, session(b"k", 10, 25)) == (b"k", 25, 10)


def test_a_key_too_short_for_its_kind_of_store_is_refused() -> None:
    with pytest.raises(BadKey, match="a key of 11 bytes is too short for a window store"):
        split_key(StoreKind.WINDOW, bytes(11))


def test_the_last_value_of_a_key_counts_and_a_tombstone_deletes_it(tmp_path: Path) -> None:
    view = key_value(tmp_path, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None), (b"c", None))
    assert view.get(b"a") == Entry(Place(b"a", 0, 0, 0), b"2", 1)
    assert view.get(b"b") is None
    assert view.count() == 1
    view.apply([Change(0, b"a", None, 2)], {0: 6})
    assert view.get(b"a") is None
    view.close()


def test_an_empty_value_is_a_value(tmp_path: Path) -> None:
    view = key_value(tmp_path, (b"", b""))
    assert view.get(b"") == Entry(Place(b"", 0, 0, 0), b"", 1)
    view.close()


def test_ranges_are_in_the_order_of_bytes_with_both_ends_inclusive(tmp_path: Path) -> None:
    view = key_value(tmp_path, *((key, b"v") for key in (b"b", b"\xff", b"a", b"ab", b"\x00", b"B")))
    assert keys(view.range()) == [b"\x00", b"B", b"a", b"ab", b"b", b"\xff"]
    assert keys(view.range(b"a", b"b")) == [b"a", b"ab", b"b"]
    assert keys(view.range(None, b"a")) == [b"\x00", b"B", b"a"]
    assert keys(view.range(b"aa")) == [b"ab", b"b", b"\xff"]
    assert keys(view.range(b"c", b"a")) == []
    view.close()


def test_a_prefix_of_bytes_that_are_all_ff_has_no_end(tmp_path: Path) -> None:
    view = key_value(tmp_path, *((key, b"v") for key in (b"a", b"a\xff", b"a\xff\x01", b"b", b"\xff", b"\xff\xff")))
    assert keys(view.prefix(b"a")) == [b"a", b"a\xff", b"a\xff\x01"]
    assert keys(view.prefix(b"a\xff")) == [b"a\xff", b"a\xff\x01"]
    assert keys(view.prefix(b"\xff")) == [b"\xff", b"\xff\xff"]
    assert len(view.prefix(b"").entries) == 6
    view.close()


def test_pages_follow_each_other_without_gap_or_repetition(tmp_path: Path) -> None:
    wanted = [b"%02d" % number for number in range(25)]
    view = key_value(tmp_path, *((key, b"v") for key in wanted))
    seen: list[bytes] = []
    after: Place | None = None
    sizes = []
    while True:
        page = view.range(b"02", slice_=Slice(after, limit=10))
        seen += keys(page)
        sizes.append(len(page.entries))
        if not page.more:
            break
        after = page.entries[-1].place
    assert seen == wanted[2:]
    assert sizes == [10, 10, 3]
    view.close()


def test_a_page_that_ends_with_the_last_entry_has_no_more(tmp_path: Path) -> None:
    view = key_value(tmp_path, (b"a", b"v"), (b"b", b"v"))
    assert view.range(slice_=Slice(limit=2)).more is False
    assert view.range(slice_=Slice(limit=1)).more is True
    view.close()


def test_windows_of_a_key_are_found_by_their_start_the_oldest_first(tmp_path: Path) -> None:
    view = View("w", StoreKind.WINDOW, tmp_path / "w.sqlite")
    view.begin_with("t", ID)
    changes = [Change(0, windowed(key, start), b"v", start) for key in (b"k", b"kk") for start in (20, 0, 10, 30)]
    view.apply(changes, {0: 8})
    assert starts(view.windows(b"k")) == [0, 10, 20, 30]
    assert starts(view.windows(b"k", 10, 20)) == [10, 20]
    assert starts(view.windows(b"k", 11, 19)) == []
    assert keys(view.windows(b"kk", 30, 30)) == [b"kk"]
    view.close()


def test_sessions_are_those_that_end_no_earlier_and_begin_no_later(tmp_path: Path) -> None:
    view = View("s", StoreKind.SESSION, tmp_path / "s.sqlite")
    view.begin_with("t", ID)
    spans = [(0, 5), (10, 30), (40, 40)]
    view.apply([Change(0, session(b"k", *span), b"v", span[1]) for span in spans], {0: 3})
    assert [(e.place.second, e.place.first) for e in view.sessions(b"k").entries] == spans
    assert [(e.place.second, e.place.first) for e in view.sessions(b"k", 30, 40).entries] == [(10, 30), (40, 40)]
    assert [(e.place.second, e.place.first) for e in view.sessions(b"k", 31, 39).entries] == []
    view.close()


def test_windows_beyond_retention_are_forgotten_partition_by_partition(tmp_path: Path) -> None:
    view = View("w", StoreKind.WINDOW, tmp_path / "w.sqlite", retention_ms=20)
    view.begin_with("t", ID)
    view.apply([Change(p, windowed(b"k%d" % p, start), b"v", start) for p in (0, 1) for start in (0, 10)], {0: 2, 1: 2})
    view.apply([Change(0, windowed(b"k0", 30), b"v", 30)], {0: 3})
    assert starts(view.windows(b"k0")) == [10, 30]
    assert starts(view.windows(b"k1")) == [0, 10]
    view.close()


def test_one_key_in_the_stores_of_two_tasks_is_kept_twice(tmp_path: Path) -> None:
    view = View("counts", StoreKind.KEY_VALUE, tmp_path / "counts.sqlite")
    view.begin_with("t", ID)
    view.apply([Change(1, b"k", b"of 1", 1), Change(0, b"k", b"of 0", 1)], {0: 1, 1: 1})
    assert [(e.place.partition, e.value) for e in view.range().entries] == [(0, b"of 0"), (1, b"of 1")]
    view.close()


def test_a_view_goes_on_where_it_was(tmp_path: Path) -> None:
    key_value(tmp_path, (b"a", b"1")).close()
    view = View("counts", StoreKind.KEY_VALUE, tmp_path / "counts.sqlite")
    view.begin_with("app-counts-changelog", ID)
    assert view.positions() == {0: 1}
    assert view.count() == 1
    view.close()


def test_a_topic_that_was_made_anew_empties_its_view(tmp_path: Path) -> None:
    view = key_value(tmp_path, (b"a", b"1"))
    view.begin_with("app-counts-changelog", b"another".ljust(16))
    assert view.positions() == {}
    assert view.count() == 0
    view.close()


@pytest.mark.parametrize("content", [b"no database at all, just some text" * 100, b""])
def test_a_damaged_file_is_made_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "counts.sqlite").write_bytes(content)
    view = key_value(tmp_path, (b"a", b"1"))
    assert view.count() == 1
    view.close()


def test_changes_and_position_go_in_together_or_not_at_all(tmp_path: Path) -> None:
    view = View("w", StoreKind.WINDOW, tmp_path / "w.sqlite")
    view.begin_with("t", ID)
    with pytest.raises(BadKey):
        view.apply([Change(0, windowed(b"k", 0), b"v", 0), Change(0, b"short", b"v", 0)], {0: 2})
    assert view.positions() == {}
    assert view.count() == 0
    view.close()


def test_the_buffers_of_joins_and_of_suppress_are_not_for_questions() -> None:
    builder = StreamsBuilder()
    serdes = Serdes.string, Serdes.string
    left, right = (builder.stream(topic, Consumed(*serdes)) for topic in ("left", "right"))
    builder.global_table("everywhere", Consumed(*serdes), Materialized("copy"))
    builder.table("rows", Consumed(*serdes), Materialized("rows-store"))
    joined = left.left_join(right, lambda one, other: f"{one}{other}", JoinWindows.of(10, grace_ms=0))
    counts = joined.group_by_key(Grouped(*serdes)).windowed_by(TimeWindows.of(10, grace_ms=0)).count("counts")
    counts.suppress(Suppressed.until_window_closes()).to_stream().to("out")
    app = StreamsApp("app", builder.build())
    assert [(spec.name, topic) for spec, topic in queryable(app)] == [
        ("rows-store", "app-rows-store-changelog"),
        ("counts", "app-counts-changelog"),
        ("copy", "everywhere"),
    ]


def test_a_store_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    app = StreamsApp("app", builder.build())
    with closing(QueryableStores(app, tmp_path)) as stores, pytest.raises(NoSuchStore) as missing:
        stores["counts"]
    assert str(missing.value) == "there is no store counts; there are none: name one with Materialized('counts')"
