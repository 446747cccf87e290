"""Prometheus' text format."""

from collections.abc import Iterator

from ottla.metrics.text import COUNTER, GAUGE, SLICE, Family, Sample, labels, listed, many, number, one, some

SIZE = Family("kafka_log_log_size", GAUGE, "Bytes of a log.")


def test_a_family_is_its_help_its_type_and_its_samples() -> None:
    requests = Family("requests_total", COUNTER, "Requests, by name.")
    assert some(requests, [(labels(request="Produce"), 3), (labels(request="Fetch"), 1.5)]) == (
        "# HELP requests_total Requests, by name.\n"
        "# TYPE requests_total counter\n"
        'requests_total{request="Produce"} 3\n'
        'requests_total{request="Fetch"} 1.5\n'
    )


def test_a_family_without_samples_is_left_out() -> None:
    assert some(SIZE, []) == ""
    assert list(many(SIZE, [])) == []


def test_a_sample_may_stand_without_labels() -> None:
    assert one(SIZE, 7).splitlines()[-1] == "kafka_log_log_size 7"


def test_quotes_backslashes_and_line_ends_of_a_label_are_escaped() -> None:
    assert labels(group='a"b\\c\nd') == r'{group="a\"b\\c\nd"}'


def test_a_long_family_comes_in_pieces_under_one_head() -> None:
    samples = [(labels(partition=n), n) for n in range(2 * SLICE + 1)]
    pieces = list(many(SIZE, samples))
    assert [piece.count("\n") for piece in pieces] == [SLICE + 2, SLICE, 1]
    assert "".join(pieces) == some(SIZE, samples)


def test_columns_of_rows_are_written_as_samples_one_by_one_would_be() -> None:
    rows = [(labels(partition=n), n, n * n) for n in range(SLICE + 1)]
    assert list(listed(SIZE, rows, 2)) == list(many(SIZE, [(mark, square) for mark, _, square in rows]))
    assert list(listed(SIZE, [], 2)) == []


def test_samples_are_read_only_as_far_as_a_piece_needs() -> None:
    read: list[int] = []

    def counted() -> Iterator[Sample]:
        for n in range(2 * SLICE):
            read.append(n)
            yield "", n

    pieces = many(SIZE, counted())
    next(pieces)
    assert len(read) == SLICE


def test_whole_numbers_are_written_without_a_point() -> None:
    assert [number(3), number(3.0), number(0.25)] == ["3", "3", "0.25"]
