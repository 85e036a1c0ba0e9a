"""A report with a hostile text in every field that holds free text."""

from msgspec import Struct
from msgspec.structs import fields, replace

from hopscope.model.report import Evidence


def poisoned(value: object, kind: object, nasty: str) -> object:
    """The value with each free text in it replaced; a member of a closed list stays what it is."""
    if kind in {str, str | None}:
        return nasty
    if kind == tuple[str, ...]:
        return (nasty, nasty)
    if kind == Evidence:
        return {nasty: nasty, f"{nasty}_ms": 1.5}
    if isinstance(value, Struct):
        changes = {field.name: poisoned(getattr(value, field.name), field.type, nasty) for field in fields(value)}
        return replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(poisoned(item, tuple[str, ...] if isinstance(item, tuple) else None, nasty) for item in value)
    return value
