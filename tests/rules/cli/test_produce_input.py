"""Lines that `ottla produce` reads."""

import fcntl
import os

from ottla.cli.produce import read_lines


def test_lines_come_without_their_newline_and_the_last_needs_none() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one\n\ntwo\nthree")
    os.close(writing)
    try:
        assert list(read_lines(reading, lambda: None)) == [b"one", b"", b"two", b"three"]
    finally:
        os.close(reading)


def test_a_descriptor_above_1023_is_read_as_any_other() -> None:
    """A process with many connections has such descriptors, and `select.select` refuses them."""
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, 1024)
    os.close(reading)
    os.write(writing, b"one\n")
    os.close(writing)
    try:
        assert list(read_lines(high, lambda: None)) == [b"one"]
    finally:
        os.close(high)


def test_a_pause_of_the_input_is_told_before_more_is_awaited() -> None:
    reading, writing = os.pipe()
    pauses: list[int] = []

    def idle() -> None:
        pauses.append(len(pauses))
        os.write(writing, b"late\n")
        os.close(writing)

    try:
        assert list(read_lines(reading, idle)) == [b"late"]
        assert pauses == [0]
    finally:
        os.close(reading)
