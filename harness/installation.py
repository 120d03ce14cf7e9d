"""Where Windtunnel is installed: a checkout, or the folder `windtunnel` of an installed wheel.

checkout      ROOT/driver  ROOT/harness  ROOT/reports  ROOT/scenarios  ROOT/compose.yaml ...
wheel         the same without compose.yaml, docker/ and tests/
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The directory that holds `driver/`, `harness/`, `reports/` and `scenarios/`."""

SCENARIOS = ROOT / "scenarios"
COMPOSE_FILE = ROOT / "compose.yaml"


def is_checkout() -> bool:
    """Whether the files that are not part of a wheel are there."""
    return COMPOSE_FILE.is_file()
