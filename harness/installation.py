"""Locates Windtunnel's files, either in a checkout or in an installed wheel.

checkout      ROOT/driver  ROOT/harness  ROOT/reports  ROOT/scenarios  ROOT/compose.yaml ...
wheel         the same without compose.yaml, docker/ and tests/
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The directory that contains `driver/`, `harness/`, `reports/` and `scenarios/`."""

SCENARIOS = ROOT / "scenarios"
COMPOSE_FILE = ROOT / "compose.yaml"


def is_checkout() -> bool:
    """Return whether Windtunnel runs from a checkout, which has files that a wheel lacks."""
    return COMPOSE_FILE.is_file()
