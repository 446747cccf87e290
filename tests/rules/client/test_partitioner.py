"""Records with a key go where every other client would put them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as their_murmur2

from ottla.client.partitioner import Sticky, murmur2, partition_of_key


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_values_of_kafkas_own_tests(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed & 0xFFFFFFFF


@given(st.binary(max_size=64))
def test_murmur2_equals_that_of_kafka_python(data: bytes) -> None:
    assert murmur2(data) == their_murmur2(data) & 0xFFFFFFFF


@given(st.binary(max_size=64), st.integers(1, 1000))
def test_a_key_has_one_partition_and_the_sign_bit_does_not_count(key: bytes, partitions: int) -> None:
    assert partition_of_key(key, partitions) == (their_murmur2(key) & 0x7FFFFFFF) % partitions


def test_kip_480_records_without_a_key_stay_on_one_partition_until_its_batch_is_full() -> None:
    sticky = Sticky(random.Random(7))
    first = [sticky.choose("orders", [0, 1, 2, 3]) for _ in range(20)]
    assert len(set(first)) == 1
    chosen = set()
    for _ in range(50):
        sticky.batch_full("orders")
        chosen.add(sticky.choose("orders", [0, 1, 2, 3]))
    assert chosen == {0, 1, 2, 3}


def test_a_partition_that_is_gone_is_not_chosen_again() -> None:
    sticky = Sticky(random.Random(7))
    sticky.choose("orders", [5])
    assert sticky.choose("orders", [1]) == 1
