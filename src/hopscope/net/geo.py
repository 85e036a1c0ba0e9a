"""Whose an address is and where it stands, from local databases (GeoLite2, DB-IP through geoip2; others by maxminddb).

Never on the probe path: asked once, after the probes. A database that is absent or broken is a note, no failure of the
run; private and shared addresses have no owner and are not asked for. Databases are other people's files: text from
them is cut, and numbers that are none are left out.
"""

from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from math import isfinite
from pathlib import Path

import maxminddb
from geoip2.database import Reader
from geoip2.errors import AddressNotFoundError

from hopscope.model.record import Failure, Named

MAX_TEXT = 120


def name_addresses(databases: Iterable[str], addresses: Iterable[str]) -> Iterator[Named | Failure]:
    """What each database says about each address, as records; a database that cannot be read as a note."""
    wanted = [address for address in addresses if _global(address)]
    for path in databases:
        try:
            yield from _from_database(path, wanted)
        except (OSError, ValueError, maxminddb.InvalidDatabaseError) as error:
            why = f"geo database {path}: {error}"
            yield Failure(kind="skipped", why=why, advice="correct [geo] mmdb in the target file, or leave it out")


def _global(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_global
    except ValueError:
        return False


def _from_database(path: str, addresses: list[str]) -> Iterator[Named]:
    """Records from one database, by its own type."""
    with Reader(path) as reader:
        kind = reader.metadata().database_type
        source = f"{Path(path).name} ({kind})"[:MAX_TEXT]
        if "ASN" in kind or "City" in kind:
            for address in addresses:
                try:
                    yield _typed(reader, kind, address, source)
                except AddressNotFoundError:
                    continue
            return
    with maxminddb.open_database(path) as plain:
        for address in addresses:
            found = plain.get(address)
            if isinstance(found, dict):
                yield _untyped(found, address, source)


def _typed(reader: Reader, kind: str, address: str, source: str) -> Named:
    """GeoLite2's and DB-IP's schemas."""
    if "ASN" in kind:
        owner = reader.asn(address)
        return Named(
            address=address,
            source=source,
            asn=owner.autonomous_system_number,
            as_name=_text(owner.autonomous_system_organization),
            prefix=None if owner.network is None else str(owner.network),
        )
    city = reader.city(address)
    radius = city.location.accuracy_radius
    return Named(
        address=address,
        source=source,
        place=_text(", ".join(part for part in (city.city.name, city.country.iso_code) if part)),
        lat=_degrees(city.location.latitude),
        lon=_degrees(city.location.longitude),
        radius_km=None if radius is None else float(radius),
    )


def _untyped(found: dict[str, object], address: str, source: str) -> Named:
    """Flat schemas such as IPinfo's: `asn` as "AS64500", `as_name`, `city`, `country`."""
    asn = str(found.get("asn", "")).removeprefix("AS")
    place = ", ".join(str(found[key]) for key in ("city", "country") if found.get(key))
    return Named(
        address=address,
        source=source,
        asn=int(asn) if asn.isdecimal() and len(asn) <= len(str(2**32)) else None,
        as_name=_text(found.get("as_name") or found.get("name")),
        place=_text(place),
    )


def _text(value: object) -> str | None:
    return str(value)[:MAX_TEXT] if value else None


def _degrees(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
