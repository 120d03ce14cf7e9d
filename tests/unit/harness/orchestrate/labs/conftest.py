"""No test of this folder reaches the container engine of the machine."""

import pytest

from windtunnel.harness.orchestrate.labs import containers


@pytest.fixture(autouse=True)
def no_engine(tmp_path, monkeypatch):
    """Return the address of an engine that does not listen: tests simulate one if they need it."""
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.delenv(containers.INSIDE_VARIABLE, raising=False)
    return path
