"""The committed facts on a node, and who waits for them."""

import asyncio

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.runtime.committed import CommittedImage


def _at(offset: int) -> MetadataImage:
    return MetadataImage(offset=offset)


def test_who_waits_for_an_offset_goes_on_when_it_is_reached_and_not_before() -> None:
    async def main() -> None:
        committed = CommittedImage(_at(4))
        await committed.reached(4)
        waits = asyncio.ensure_future(committed.reached(7))
        story: list[str] = []
        committed.subscribe(lambda delta, image: story.append(f"image {image.offset}, waits: {not waits.done()}"))
        await asyncio.sleep(0)
        committed.told(MetadataDelta(_at(4)), _at(6))
        await asyncio.sleep(0)
        assert not waits.done()
        committed.told(MetadataDelta(_at(6)), _at(9))
        await waits
        assert story == ["image 6, waits: True", "image 9, waits: True"]

    asyncio.run(main())


def test_a_snapshot_that_takes_the_place_of_the_log_counts_as_well() -> None:
    async def main() -> None:
        committed = CommittedImage(_at(4))
        waits = asyncio.ensure_future(committed.reached(7))
        await asyncio.sleep(0)
        committed.replace(_at(100))
        await waits

    asyncio.run(main())


def test_who_gives_up_is_forgotten() -> None:
    async def main() -> None:
        committed = CommittedImage(_at(4))
        waits = asyncio.ensure_future(committed.reached(7))
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.wait([waits])
        assert not committed._waiting
        committed.told(MetadataDelta(_at(4)), _at(9))

    asyncio.run(main())
