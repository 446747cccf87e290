"""Places on the earth."""

import math
from typing import Any, Final

from ottla.serdes.types import DOUBLE
from ottla.streams.expressions.functions.declare import double, family, not_literal, takes, text

__all__ = ["geo_distance"]
declare: Final = family("geo")

_RADIUS_KM: Final = 6371.0
_RADIUS_MILES: Final = 3959.0


def _radius(unit: str) -> float:
    match unit.lower():
        case "km" | "kilometer" | "kilometers" | "kilometre" | "kilometres":
            return _RADIUS_KM
        case "mi" | "mile" | "miles":
            return _RADIUS_MILES
    raise ValueError(f"{unit!r} is neither km nor miles")


def _distance(latitude: float, longitude: float, to_latitude: float, to_longitude: float, unit: str) -> float | None:
    if not (abs(latitude) <= 90 and abs(to_latitude) <= 90 and abs(longitude) <= 180 and abs(to_longitude) <= 180):
        return None
    by_latitude = math.sin(math.radians(to_latitude - latitude) / 2)
    by_longitude = math.sin(math.radians(to_longitude - longitude) / 2)
    of_both = math.cos(math.radians(latitude)) * math.cos(math.radians(to_latitude))
    a = by_latitude * by_latitude + by_longitude * by_longitude * of_both
    return 2 * math.asin(math.sqrt(min(a, 1.0))) * _radius(unit)


def _column(F: Any, latitude: Any, longitude: Any, to_latitude: Any, to_longitude: Any, unit: Any) -> Any:
    def inside(given: Any, limit: int) -> Any:
        return (given >= -limit) & (given <= limit)

    by_latitude = F.sin(F.radians(to_latitude - latitude) / 2)
    by_longitude = F.sin(F.radians(to_longitude - longitude) / 2)
    of_both = F.cos(F.radians(latitude)) * F.cos(F.radians(to_latitude))
    a = by_latitude * by_latitude + by_longitude * by_longitude * of_both
    name = F.lower(unit)
    radius = F.when(name.isin("km", "kilometer", "kilometers", "kilometre", "kilometres"), F.lit(_RADIUS_KM)).when(
        name.isin("mi", "mile", "miles"), F.lit(_RADIUS_MILES)
    )
    return F.when(
        inside(latitude, 90) & inside(to_latitude, 90) & inside(longitude, 180) & inside(to_longitude, 180),
        F.asin(F.sqrt(F.least(a, F.lit(1.0)))) * 2 * radius,
    )


geo_distance: Final = declare(
    "geo_distance",
    "latitude, longitude, to_latitude, to_longitude, unit='km'",
    takes(double, double, double, double, text, gives=DOUBLE),
    _distance,
    column=_column,
    no_column=not_literal(4, "the unit"),
    fails=True,
    exact=False,
    about="The way between two places in degrees along a sphere, in km (of 6371 km) or miles (of 3959); "
    "null for places that are not on it.",
)
