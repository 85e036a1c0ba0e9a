"""Target file text → TargetFile, or one error that lists everything wrong with it.

The tree is checked to its end whatever is found on the way; the model is built only when nothing was found.
"""

from datetime import datetime

import msgspec

from hopscope.errors import TargetFileError
from hopscope.model.plan import Budget
from hopscope.targets import keys
from hopscope.targets.budgets import BUDGETS
from hopscope.targets.complaints import listed
from hopscope.targets.contents import TargetFile
from hopscope.targets.merging import Given, target
from hopscope.targets.nodes import UNKNOWN, Key, Node, entries, table_of, tables, unknown_key, whole
from hopscope.targets.syntax import Path, parse
from hopscope.targets.wording import near, quoted

MOVING_KINDS = ("globalping", "atlas", "fleet")  # one of these is several vantages when it runs


def read(text: str, *, file: str) -> TargetFile:
    """What the file says, defaults merged. `file` is its name in messages. Raises TargetFileError with every error."""
    plain = text.removeprefix("\ufeff")
    root = Node(parse(plain, file), (), [])
    found = _file(root)
    if root.complaints:
        raise TargetFileError(listed(root.complaints, plain, file))
    return msgspec.convert({**found, "file": file}, TargetFile)


def _file(root: Node) -> dict[str, object]:
    given = entries(root.value)
    budgets = _budgets(root.at("budget", given.get("budget", {})))
    _refuse_unknown(root)
    targets = _targets(root, budgets)
    vantages = [_vantage(node) for node in _listed_under(root, "vantage")]
    _refuse_twins(root, "vantage", vantages)
    names = tuple(str(values["name"]) for values in targets if "name" in values)
    found: dict[str, object] = {"budgets": budgets, "targets": targets, "vantages": vantages}
    if "quorum" in given:
        found["quorum"] = _quorum(root.at("quorum", given["quorum"]), vantages)
    if "controls" in given:
        found["controls"] = keys.CONTROLS(root.at("controls", given["controls"]))
    for section, known in (("geo", keys.GEO), ("store", keys.STORE), ("check", keys.CHECK), ("notify", keys.NOTIFY)):
        found |= table_of(root.at(section, given.get(section, {})), known)
    _check_sections(root, found)
    found["alarms"] = [_alarm(node, names) for node in _listed_under(root, "alarm")]
    found["maintenance"] = [_maintenance(node, names) for node in _listed_under(root, "maintenance")]
    return found


def _refuse_unknown(root: Node) -> None:
    for key in entries(root.value):
        if key not in keys.TOP and key in keys.target_keys(()):
            root.at(key).wrong("belongs to a target: it stands after [[target]] or [defaults]")
        elif key not in keys.TOP:
            unknown_key(root.at(key), keys.TOP)


def _listed_under(root: Node, key: str) -> list[Node]:
    return tables(root.at(key, entries(root.value).get(key, [])))


def _budgets(node: Node) -> dict[str, Budget]:
    if not isinstance(node.value, dict):
        node.expected("budgets as tables, such as [budget.mine] (the budget of all targets stands in [defaults])")
    found = dict(BUDGETS)
    for name, limits in entries(node.value).items():
        inner = node.at(name, limits)
        if not name.strip() or not name.isprintable():
            inner.wrong("expected a name of printable text")
        before = len(node.complaints)
        values = table_of(inner, keys.BUDGET)
        found[name] = msgspec.convert(values, Budget) if len(node.complaints) == before else Budget()
    return found


def _targets(root: Node, budgets: dict[str, Budget]) -> list[dict[str, object]]:
    given = entries(root.value)
    known = keys.target_keys(tuple(budgets))
    defaults = _known_target_keys(root.at("defaults", given.get("defaults", {})), known)
    listed = _listed_under(root, "target")
    meant = any(near(key, keys.TOP) == "target" for key in given if key not in keys.TOP)
    if not given:
        root.wrong('the file is empty; a target is [[target]] with name = "…" and url = "…" or host = "…"')
    elif given.get("target", []) == [] and not meant:
        root.wrong('no target; one is [[target]] with name = "…" and url = "…" or host = "…"')
    targets = [target(_known_target_keys(node, known), defaults, budgets) for node in listed]
    _refuse_twins(root, "target", targets)
    return targets


def _known_target_keys(node: Node, known: dict[str, Key]) -> Given:
    before = len(node.complaints)
    found = table_of(node, known)
    for index, complaint in enumerate(node.complaints[before:], before):
        key = complaint.path[-1]
        if complaint.says == UNKNOWN and complaint.path[:-1] == node.path and key in keys.TOP:
            says = "belongs at the top of the file, before the first [table]"
            node.complaints[index] = msgspec.structs.replace(complaint, says=says, among=())
    return Given(node, found, tuple(entries(node.value)))


def _vantage(node: Node) -> dict[str, object]:
    given = entries(node.value)
    kind = given.get("kind")
    own = keys.SETTINGS.get(kind, {}) if isinstance(kind, str) else {}
    if not own:
        own = {key: reader for settings in keys.SETTINGS.values() for key, reader in settings.items()}
    known = {**keys.VANTAGE, **{key: Key(key, reader) for key, reader in own.items()}}
    elsewhere = {key: [name for name, settings in keys.SETTINGS.items() if key in settings] for key in given}
    strange = [key for key in given if key not in known and elsewhere[key]]
    for key in strange:
        node.at(key).wrong(f"not a key of kind {quoted(kind)}, but of {' and '.join(elsewhere[key])}")
    rest = Node({key: value for key, value in given.items() if key not in strange}, node.path, node.complaints)
    needs = ("name", "kind", *keys.NEEDS.get(kind, ())) if isinstance(kind, str) else ("name", "kind")
    found = table_of(rest, known, needs)
    if kind == "local":
        return found
    settings = {key: found.pop(key) for key in tuple(found) if key in own}
    return {**found, "settings": settings}


def _refuse_twins(root: Node, section: str, found: list[dict[str, object]]) -> None:
    first: dict[object, Path] = {}
    for index, values in enumerate(found):
        name = values.get("name")
        place = root.at(section).at(index).at("name", name)
        if name is not None and name in first:
            place.wrong(f"{quoted(name)} is already the name of a {section}", other=first[name])
        first.setdefault(name, place.path)


def _quorum(node: Node, vantages: list[dict[str, object]]) -> object:
    moving = any(vantage.get("kind") in MOVING_KINDS for vantage in vantages)
    return whole(1, 10_000 if moving else max(1, len(vantages)))(node)


def _check_sections(root: Node, found: dict[str, object]) -> None:
    given = entries(root.value)
    if {"url", "url_env"} <= entries(given.get("store")).keys():
        root.at("store").at("url_env").wrong("url and url_env exclude each other; leave one out")
    if "splay" in (check := entries(given.get("check"))):
        interval, splay = found.get("interval_ns"), found.get("splay_ns")
        if "interval" not in check:
            root.at("check").at("splay").wrong("needs interval: without it every start is a slot of its own")
        elif isinstance(interval, int) and isinstance(splay, int) and splay >= interval:
            root.at("check").at("splay", check["splay"]).expected("less than interval")


def _alarm(node: Node, names: tuple[str, ...]) -> dict[str, object]:
    found = table_of(node, keys.alarm_keys(names), ("metric",))
    match found.pop("raise", None):
        case (runs, of):
            found |= {"raise_runs": runs, "of_runs": of}
        case _:
            pass
    return found


def _maintenance(node: Node, names: tuple[str, ...]) -> dict[str, object]:
    found = table_of(node, keys.maintenance_keys(names), ("start", "end"))
    start, end = found.get("start"), found.get("end")
    if isinstance(start, datetime) and isinstance(end, datetime) and end <= start:
        node.at("end", end).wrong("expected an instant after start")
    return found
