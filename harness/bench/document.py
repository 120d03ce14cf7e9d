"""The results of a benchmark as one JSON document: machine, settings, all measurements, and the
figures computed from them.

Nothing is rounded, and no reading is omitted. Invalid readings are included with the reason. The
table and other ratios can therefore be computed from the document.
"""

from dataclasses import asdict
from typing import Any

from windtunnel.harness.bench.archive_host import ARCHIVES, archives
from windtunnel.harness.bench.figures import Comparison, Spread
from windtunnel.harness.bench.machine import BenchMachine
from windtunnel.harness.bench.measure import Reading
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.subject import c_version, subjects

SCHEMA = "windtunnel-bench/1"
CLIENTS = {
    "windtunnel": "windtunnel client (windtunnel.driver.client): compiled loops, exclusive "
    "publication, batch offers, block polls",
    "pyaeron": "pyaeron, Aeron's C client for Python: exclusive publication, an offer and a Python "
    "handler for each message; archive cases use windtunnel's",
}

CALLERS = (
    "python-offer and python-poll: each driver with its own client, windtunnel's and pyaeron's; "
    "concurrent publication, single offers of bytes, polls with a Python handler"
)


def bench_document(
    machine: BenchMachine,
    settings: BenchSettings,
    readings: list[Reading],
    comparisons: list[Comparison],
) -> dict[str, Any]:
    """Build the JSON document that contains a benchmark's results."""
    archive_subjects, missing = archives(settings)
    return {
        "schema": SCHEMA,
        "machine": asdict(machine) | {"warning": machine.warning},
        "client": CLIENTS[settings.client],
        "callers": CALLERS,
        "drivers": {each.name: each.title for each in subjects(settings)},
        "archives": {each.name: each.title for each in archive_subjects},
        "left_out": {ARCHIVES[name].title: why for name, why in missing.items()},
        "pyaeron": c_version(),
        "settings": asdict(settings),
        "figures": [_figure(each) for each in comparisons],
        "readings": [asdict(reading) for reading in readings],
    }


def _figure(comparison: Comparison) -> dict[str, Any]:
    figure = comparison.figure
    return {
        "name": figure.name,
        "case": figure.case,
        "unit": figure.unit,
        "peer": figure.peer,
        "better": "more" if figure.is_more_better else "less",
        "ours": _spread(comparison.ours),
        figure.peer: _spread(comparison.peer),
        "ratio": comparison.ratio,
        "floor": comparison.floor,
        "holds": comparison.holds,
    }


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {
        "median": spread.median,
        "min": spread.least,
        "max": spread.most,
        "values": list(spread.values),
    }
