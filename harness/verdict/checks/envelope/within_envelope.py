"""Check that a driver behaves as sound drivers do in the same scenario, figure by figure.

It is part of the verdict of each simulated run of a scenario that has an envelope. In real time,
the machine determines most figures, so they have no envelope. The exact band is in `bands`.
"""

from collections.abc import Collection, Sequence

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.checks.envelope.bands import (
    Band,
    Envelope,
    case_digest,
    envelopes,
    is_steady,
    stream_key,
)
from windtunnel.harness.verdict.checks.envelope.figures import NS, UNITS, figure_text, figures_of
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, failed, passed
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.virtual import is_virtual

NAME = "within_envelope"


def within_envelope(
    evidence: Evidence, case: Case, rows: Sequence[ResultRow]
) -> list[Finding] | None:
    """In a simulation of a scenario that comes with Windtunnel, each figure is in the range that
    the same drivers had over many seeds, extended at both ends.

    Returns None if nothing is known about the case: in real time, for a changed scenario, for
    drivers that were not measured, and for drivers with settings from outside of the scenario.
    """
    manifest = evidence.manifest
    is_compared = is_virtual(case) and is_steady(case) and not case.replays
    envelope = envelopes().get(case.name) if is_compared else None
    if envelope is None or isinstance(manifest, Missing) or envelope.digest != case_digest(case):
        return None
    if any(each.settings for each in manifest.subjects.values()):
        return None
    drivers = {each.driver for each in manifest.subjects.values()}
    return _compare(envelope, drivers, rows) if drivers <= set(envelope.drivers) else None


def _compare(
    envelope: Envelope, drivers: Collection[str], rows: Sequence[ResultRow]
) -> list[Finding]:
    findings: list[Finding] = []
    compared = 0
    for row in rows:
        bands = envelope.bands(stream_key(row.traffic, row.to_host), drivers)
        figures = figures_of(row)
        for name in figures.keys() & bands.keys():
            compared += 1
            if not bands[name].contains(figures[name]):
                text = _outside(name, figures[name], bands[name], envelope)
                about = stream_key(row.traffic, row.to_host)
                findings.append(failed(NAME, text, about, kind=Kind.TIMING))
    if findings:
        return sorted(findings, key=lambda each: (each.about, each.text))
    text = f"{counted(compared, 'figure')} within the range of sound drivers"
    return [passed(NAME, text, kind=Kind.TIMING)]


def _outside(name: str, value: float, band: Band, envelope: Envelope) -> str:
    low, high = (
        figure_text(name, each) for each in (band.lowest / band.ratio, band.highest * band.ratio)
    )
    unit = "" if UNITS[name] == NS else f" {UNITS[name]}"
    last = envelope.first_seed + envelope.seeds - 1
    return (
        f"{name} is {figure_text(name, value)}{unit}: expected {low} to {high}, because "
        f"sound drivers had {figure_text(name, band.lowest)} to {figure_text(name, band.highest)} "
        f"in {band.runs} runs with the seeds {envelope.first_seed} to {last}"
    )
