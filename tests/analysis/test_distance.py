"""Great circles and floors against known cities (method 4.4, 4.6)."""

import pytest

from analysis.comparing import BERLIN, FRANKFURT, NEW_YORK
from hopscope.analysis.distance import Place, explained_ms, floor_ms, great_circle_km, place_of_site, stretch
from hopscope.model.plan import Site

POTSDAM = Site(lat=52.39, lon=13.06)
ONE_DEGREE_KM = 111.195


@pytest.mark.parametrize(
    ("here", "there", "km", "floor"),
    [
        # d − 50 − 50 km, both ways, at 199.86 km/ms
        (BERLIN, FRANKFURT, 423.4, 3.237),
        (NEW_YORK, FRANKFURT, 6203.0, 61.073),
        (BERLIN, POTSDAM, 27.2, 0.0),
        (BERLIN, BERLIN, 0.0, 0.0),
        (Site(lat=0, lon=0), Site(lat=0, lon=180), 20015.1, 199.289),
        (Site(lat=90, lon=0), Site(lat=-90, lon=77), 20015.1, 199.289),
    ],
)
def test_floor(here: Site, there: Site, km: float, floor: float) -> None:
    a, b = place_of_site(here), place_of_site(there)
    assert great_circle_km(a, b) == pytest.approx(km, abs=0.05)
    assert floor_ms(a, b) == pytest.approx(floor, abs=0.0005)
    assert (floor_ms(a, b), great_circle_km(a, b)) == (floor_ms(b, a), great_circle_km(b, a))


@pytest.mark.parametrize(
    ("least_ms", "here", "there", "expected"),
    [
        (6.474, BERLIN, FRANKFURT, 2.0),
        (61.073, NEW_YORK, FRANKFURT, 1.0),
        (30.0, NEW_YORK, FRANKFURT, 0.491),
        (5.0, BERLIN, POTSDAM, None),
        (5.0, BERLIN, BERLIN, None),
    ],
)
def test_stretch(least_ms: float, here: Site, there: Site, expected: float | None) -> None:
    got = stretch(least_ms, place_of_site(here), place_of_site(there))
    assert got == (None if expected is None else pytest.approx(expected, abs=0.0005))


@pytest.mark.parametrize(
    ("degrees", "radius", "known"),
    [
        (0.89, 0.0, False),
        (0.91, 0.0, True),
        (0.91, 51.0, False),
        (0.953, 50.0, False),  # 106 km: the floor of 6 km would make 5 ms a stretch of 83
        (1.79, 50.0, False),  # 99 km are left
        (1.81, 50.0, True),
    ],
)
def test_a_stretch_is_unknown_where_less_than_100_km_are_left_without_the_radii(
    degrees: float, radius: float, known: bool
) -> None:
    here, there = Place(0, 0, radius), Place(0, degrees, radius)
    assert great_circle_km(here, there) == pytest.approx(degrees * ONE_DEGREE_KM, abs=0.01)
    assert (stretch(10, here, there) is not None) == known


def test_radii_are_added_where_delay_is_explained_and_subtracted_where_a_floor_is_to_hold() -> None:
    wide, narrow = (Place(50.11, 8.68, radius) for radius in (50.0, 0.0))
    home = Place(52.52, 13.40, 0.0)
    assert explained_ms(home, wide) > explained_ms(home, narrow)
    assert floor_ms(home, wide) < floor_ms(home, narrow)
