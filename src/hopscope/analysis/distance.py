"""How long light needs: great circles, and the delay that distance explains (method 4.4, 4.6).

Light in fibre travels at two thirds of its speed in vacuum. Radii are a database's own accuracy: added where a delay
is to be explained, subtracted where a floor is to hold.
"""

from math import asin, cos, radians, sin, sqrt

from msgspec import Struct

from hopscope.model.plan import Site
from hopscope.model.record import Named

EARTH_KM = 6371.0
FIBRE_KM_PER_MS = 299_792.458 / 1000 * 2 / 3
EXPLAINING_FACTOR = 1.5
"""Method 4.4: cables are longer than great circles."""
DEFAULT_RADIUS_KM = 50.0
"""Method 4.6. It holds for a site in a target file too: a seller's "Frankfurt" is a city, not an address."""
LEAST_KM = 100.0
"""Method 4.6: nearer than this, the radii taken off, a stretch says nothing."""


class Place(Struct, frozen=True):
    """Degrees north and east, and how far off they may be, km."""

    lat: float
    lon: float
    radius_km: float


def place_of(names: list[Named]) -> Place | None:
    """The place that databases give an address, or `None`."""
    for one in names:
        if one.lat is not None and one.lon is not None:
            return Place(one.lat, one.lon, DEFAULT_RADIUS_KM if one.radius_km is None else one.radius_km)
    return None


def great_circle_km(a: Place, b: Place) -> float:
    """Distance on the sphere, km (haversine formula)."""
    north, south = radians(a.lat), radians(b.lat)
    half = sin((south - north) / 2) ** 2 + cos(north) * cos(south) * sin(radians(b.lon - a.lon) / 2) ** 2
    return 2 * EARTH_KM * asin(min(1.0, sqrt(half)))


def explained_ms(a: Place, b: Place) -> float:
    """The longest round trip between two places that distance explains, ms: 1.5 × 2(d + r₁ + r₂)/(2/3 c)."""
    return EXPLAINING_FACTOR * 2 * (great_circle_km(a, b) + a.radius_km + b.radius_km) / FIBRE_KM_PER_MS


def place_of_site(site: Site) -> Place:
    """The place that a target file states."""
    return Place(site.lat, site.lon, DEFAULT_RADIUS_KM)


def floor_ms(a: Place, b: Place) -> float:
    """The least round trip that light allows between two places, ms: 2 · max(0, d − r₁ − r₂)/(2/3 c)."""
    return 2 * max(0.0, great_circle_km(a, b) - a.radius_km - b.radius_km) / FIBRE_KM_PER_MS


def stretch(least_rtt_ms: float, a: Place, b: Place) -> float | None:
    """How many times the floor the least round trip takes; `None` where that floor is of less than 100 km.

    The radii are taken off first, as they are from the floor (method 4.6): a few kilometres left of 106 would make any
    round trip a multiple of nearly nothing.
    """
    if great_circle_km(a, b) - a.radius_km - b.radius_km < LEAST_KM:
        return None
    return least_rtt_ms / floor_ms(a, b)
