"""Page views, enriched: with the profile of who looked, and with what they searched for within one second.

    ottla topics create user-profiles page-views searches user-activity --partitions 2
    echo 'anna:{"name": "Anna", "interest": "bikes"}' | ottla produce user-profiles --key-separator :
    echo 'anna:{"page": "/mountain-bikes"}' | ottla produce page-views --key-separator :
    echo 'anna:{"terms": "carbon wheels"}' | ottla produce searches --key-separator :
    ottla streams run examples/streams/click_enrichment.py --once
    ottla consume user-activity -o start -e

All keys are user ids, and the topics have equally many partitions, so nothing has to be sent around. A view without
profile or search comes out too, with nulls: both joins are left joins. When a view has found no search, that is known
only after the window, and told when the next view or search comes.
"""

from typing import Any

from ottla.streams import Consumed, JoinWindows, Produced, Serdes, StreamJoined, StreamsApp, StreamsBuilder


def with_profile(view: dict[str, Any], profile: dict[str, Any] | None) -> dict[str, Any]:
    known = profile or {}
    return {"page": view["page"], "name": known.get("name"), "interest": known.get("interest")}


def with_search(activity: dict[str, Any], search: dict[str, Any] | None) -> dict[str, Any]:
    return {**activity, "terms": search["terms"] if search else None}


builder = StreamsBuilder()
profiles = builder.table("user-profiles", Consumed(Serdes.string, Serdes.json))
views = builder.stream("page-views", Consumed(Serdes.string, Serdes.json))
searches = builder.stream("searches", Consumed(Serdes.string, Serdes.json))
(
    views.left_join(profiles, with_profile)
    .left_join(
        searches,
        with_search,
        JoinWindows.of(1_000, grace_ms=0),
        StreamJoined(Serdes.string, Serdes.json, Serdes.json, store_name="recent"),
    )
    .to("user-activity", Produced(Serdes.string, Serdes.json))
)

app = StreamsApp("click-enrichment", builder.build())
