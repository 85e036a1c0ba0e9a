"""The line for monitoring systems: its grammar, its escapes, its thresholds."""

import re

import pytest
from msgspec.structs import replace

from history.made import file, finding, ping
from history.made import report as made
from hopscope.model.plan import Budget
from hopscope.model.report import PingResult, Report, Status
from hopscope.render.nagios import LINE_LENGTH, render, trouble

# Monitoring Plugins, development guidelines: 'label'=value[UOM];[warn];[crit];[min];[max], a space between two.
NUMBER = r"-?\d+(\.\d+)?"
ITEM = rf"'[^'=|\n]+'=({NUMBER}(ms|%)?|U)(;({NUMBER})?(;({NUMBER})?(;({NUMBER})?(;({NUMBER})?)?)?)?)?"
LINE = re.compile(rf"HOPSCOPE (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+( \| {ITEM}( {ITEM})*)?\n")
LABEL = re.compile(r"'([^']+)'=")


def test_all_of_a_report_is_one_line(report: Report) -> None:
    line = render(report)
    assert LINE.fullmatch(line)
    labels = LABEL.findall(line)
    assert len(labels) == len(set(labels))
    assert len(labels) > 5


def test_numbers_and_thresholds() -> None:
    (target,) = file("fra").targets
    found = made({"fra": "ok"}, pings=(ping("fra", lost=1),))
    line = render(found, (replace(target, critical=Budget(rtt_p95_ms=120.0)),))
    assert line.split(" | ")[1] == ("'fra rtt p50'=8.25ms;;;0 'fra rtt p95'=9.5ms;40;120;0 'fra loss'=2%;1;;0;100\n")
    assert render(found).split(" | ")[1] == "'fra rtt p50'=8.25ms;;;0 'fra rtt p95'=9.5ms;;;0 'fra loss'=2%;;;0;100\n"


def test_unknown_is_no_number() -> None:
    line = render(made({"fra": "critical"}, pings=(ping("fra", lost=50), ping("ham", sent=0))))
    assert "'fra rtt p50'=U" in line
    assert "'fra loss'=100%" in line
    assert "'ham loss'=U" in line
    assert LINE.fullmatch(line)


@pytest.mark.parametrize("status", ["ok", "warning", "critical", "unknown"])
def test_the_word_is_the_status(status: Status) -> None:
    assert render(made({"fra": status})).startswith(f"HOPSCOPE {status.upper()} - ")


HOSTILE = "a'b=c|d\ne\r\x1b[31mf\u202eg\u2028h"


def test_hostile_text_stays_inside() -> None:
    found = made({HOSTILE: "warning"}, finding(HOSTILE, why=HOSTILE))
    line = render(replace(found, verdict=replace(found.verdict, summary=f"{HOSTILE} is bad")))
    assert LINE.fullmatch(line)
    assert line[:-1].isprintable()
    assert line.count("|") == 1
    assert trouble(HOSTILE).count("|") == 0
    assert LINE.fullmatch(trouble(HOSTILE))


def test_labels_tell_places_and_protocols_apart() -> None:
    one = ping("fra")
    tcp: PingResult = replace(one, protocol="tcp", port=443)
    both = render(made({"fra": "ok"}, pings=(one, tcp)))
    assert {"fra icmp loss", "fra tcp loss"} <= set(LABEL.findall(both))
    places = render(made({"fra": "ok"}, pings=(one, ping("fra", vantage="paris"))))
    assert {"fra here loss", "fra paris loss"} <= set(LABEL.findall(places))
    twice = render(made({"fra": "ok"}, pings=(one, one)))
    assert {"fra loss", "fra loss 2"} <= set(LABEL.findall(twice))


def test_a_thousand_targets_fit() -> None:
    line = render(made({f"target-{number}": "ok" for number in range(1000)}))
    assert len(line) <= LINE_LENGTH + 1
    assert LINE.fullmatch(line)


def test_what_came_to_no_verdict() -> None:
    assert trouble("another check is running") == "HOPSCOPE UNKNOWN - another check is running\n"
