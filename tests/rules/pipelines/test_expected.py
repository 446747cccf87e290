"""Which batches are taken for small before they are computed."""

from ottla.pipelines.sink.expected import FEW_RECORDS, HERE_BYTES, SMALL_BYTES, Expected


def test_a_first_batch_is_small_if_it_has_read_few_records() -> None:
    expected = Expected()
    assert not expected.small and not expected.fits(1), "nothing is known"
    expected.first(FEW_RECORDS + 1)
    assert not expected.small
    expected.first(FEW_RECORDS)
    assert expected.small and expected.fits(FEW_RECORDS) and not expected.fits(FEW_RECORDS + 1)


def test_a_batch_behind_a_large_one_is_not_small() -> None:
    expected = Expected()
    expected.wrote(SMALL_BYTES + 1, records=1)
    assert not expected.small and not expected.fits(1)
    expected.wrote(SMALL_BYTES, records=None)
    assert expected.small


def test_records_that_gave_much_are_expected_to_give_much_again() -> None:
    expected = Expected()
    expected.wrote(SMALL_BYTES, records=100)
    most = HERE_BYTES * 100 // SMALL_BYTES
    assert (expected.fits(most), expected.fits(most + 1)) == (True, False)


def test_a_batch_that_failed_is_tried_by_tasks() -> None:
    expected = Expected()
    expected.first(1)
    expected.failed()
    assert not expected.fits(1)
