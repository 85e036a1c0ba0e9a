"""Owners and places from databases written here: both of geoip2's types, a flat one, and files that are none."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from hopscope.model.record import Failure, Named
from hopscope.net.geo import name_addresses

Write = Callable[[str, dict[str, object]], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(kind: str, row: dict[str, object]) -> str:
        writer = MMDBWriter(database_type=kind, ip_version=4)
        writer.insert_network(IPSet(["11.1.0.0/16"]), row)
        path = tmp_path / f"{kind}.mmdb"
        writer.to_db_file(str(path))
        return str(path)

    return make


def test_an_asn_database_names_the_owner_and_its_prefix(write: Write) -> None:
    path = write("GeoLite2-ASN", {"autonomous_system_number": 64500, "autonomous_system_organization": "Lab Transit"})
    (record,) = name_addresses([path], ["11.1.2.3"])
    assert record == Named(
        address="11.1.2.3",
        source="GeoLite2-ASN.mmdb (GeoLite2-ASN)",
        asn=64500,
        as_name="Lab Transit",
        prefix="11.1.0.0/16",
    )


def test_a_city_database_gives_the_place_with_its_accuracy(write: Write) -> None:
    row: dict[str, object] = {
        "city": {"names": {"en": "Frankfurt"}},
        "country": {"iso_code": "DE"},
        "location": {"latitude": 50.1, "longitude": 8.7, "accuracy_radius": 20},
    }
    (record,) = name_addresses([write("GeoLite2-City", row)], ["11.1.2.3"])
    assert isinstance(record, Named)
    assert (record.place, record.lat, record.lon, record.radius_km) == ("Frankfurt, DE", 50.1, 8.7, 20.0)


def test_a_flat_schema_that_geoip2_refuses_is_read_all_the_same(write: Write) -> None:
    path = write("ipinfo lite", {"asn": "AS64501", "as_name": "Lab Access", "country": "NL"})
    (record,) = name_addresses([path], ["11.1.2.3"])
    assert isinstance(record, Named)
    assert (record.asn, record.as_name, record.place) == (64501, "Lab Access", "NL")


def test_private_shared_and_absent_addresses_are_not_named(write: Write) -> None:
    path = write("GeoLite2-ASN", {"autonomous_system_number": 64500})
    assert list(name_addresses([path], ["10.0.0.1", "100.64.0.1", "fe80::1%eth0", "8.8.8.8", "no address"])) == []


@pytest.mark.parametrize("content", [None, b"", b"not a database", b"\xab\xcd\xefMaxMind.com" + b"\xff" * 40])
def test_an_absent_or_broken_database_is_a_note(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.mmdb"
    if content is not None:
        path.write_bytes(content)
    (record,) = name_addresses([str(path)], ["11.1.2.3"])
    assert isinstance(record, Failure)
    assert record.kind == "skipped"
    assert str(path) in record.why
