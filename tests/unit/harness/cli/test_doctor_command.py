"""`windtunnel doctor`: probes of the machine, and the fidelities that they allow."""

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from windtunnel.harness.cli import exit_code, machine
from windtunnel.harness.cli.machine import Fact
from windtunnel.harness.cli.root import main


def having(*names: str) -> list[Fact]:
    return [Fact(name, True, "") for name in names]


@pytest.mark.parametrize(
    ("names", "fidelities"),
    [
        (("Docker engine", "privileges", "network namespaces", "tcpdump"), ["compose", "netns"]),
        (("privileges", "network namespaces", "tcpdump"), ["netns"]),
        (("Docker engine",), ["compose"]),
        (("privileges", "network namespaces"), []),
        (("network namespaces", "tcpdump"), []),
        (("privileges", "tcpdump"), []),
        (("Python", "numba", "scapy", "pydantic"), ["sim"]),
        (("Docker engine", "Python", "numba", "scapy", "pydantic"), ["compose", "sim"]),
        (("Python", "scapy", "pydantic"), []),
        ((), []),
    ],
)
def test_a_fidelity_is_possible_if_all_that_it_requires_is_available(
    names: tuple[str, ...], fidelities: list[str]
) -> None:
    assert machine.possible_fidelities(having(*names)) == fidelities


def test_a_probe_that_raises_becomes_a_fact(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken() -> Fact:
        raise RuntimeError("lost my glasses")

    monkeypatch.setattr(machine, "probes", lambda _: [broken])
    (fact,) = machine.facts(tmp_path)
    assert not fact.has
    assert "lost my glasses" in fact.detail


def test_every_probe_succeeds_on_this_machine(tmp_path: Path) -> None:
    found = machine.facts(tmp_path / "not" / "there")
    assert {"Python", "numba", "netem", "disk", "Docker engine"} <= {fact.name for fact in found}
    assert not [fact for fact in found if "the probe failed" in fact.detail]


def test_no_fidelity_is_inconclusive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "facts", lambda _: [Fact("tcpdump", False, "gone", "install it")])
    assert main(["doctor"]) == exit_code.INCONCLUSIVE
    output = capsys.readouterr().out
    assert "fallback: install it" in output
    assert "No run is possible here" in output


def test_simulation_alone_is_enough(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = having("Python", "numba", "scapy", "pydantic")
    monkeypatch.setattr(machine, "facts", lambda _: facts)
    assert main(["doctor"]) == exit_code.OK
    output = capsys.readouterr().out
    assert "No run is possible here" not in output
    assert "use --fidelity sim" in output


def test_json_has_facts_and_fidelities(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "facts", lambda _: having("Docker engine"))
    assert main(["doctor", "--json"]) == exit_code.OK
    document = json.loads(capsys.readouterr().out)
    assert document["fidelities"] == ["compose"]
    assert document["facts"][0]["has"] is True


class Engine(http.server.BaseHTTPRequestHandler):
    """A replacement for a Docker engine that serves GET /version only."""

    def do_GET(self) -> None:
        body = b'{"Version": "99.1"}' if self.path == "/version" else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "here"

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Path]:
    class Server(http.server.HTTPServer):
        address_family = socket.AF_UNIX

        def server_bind(self) -> None:
            self.socket.bind(self.server_address)

    path = tmp_path / "engine.sock"
    with Server(str(path), Engine) as server:  # type: ignore[arg-type]  # a path, for AF_UNIX
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def test_a_responding_engine_makes_containers_the_default(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{engine}")
    monkeypatch.setattr(machine, "ENGINE_TIMEOUT_S", 60.0)
    assert machine.engine_version() == "99.1"
    assert machine.default_fidelity() == "compose"
    assert machine.default_fidelity([("netns", "compose"), ("compose",)]) == "compose"
    assert machine.default_fidelity([("netns", "compose"), ("netns", "sim")]) == "netns"
    assert machine.default_fidelity([("sim", "compose"), ("sim",)]) == "sim"
    assert machine.default_fidelity([("compose",), ("sim",)]) == "compose"


def test_a_missing_engine_makes_namespaces_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'none.sock'}")
    assert machine.engine_version() is None
    assert machine.default_fidelity() == "netns"
    assert machine.default_fidelity([("sim",)]) == "sim"
    assert machine.default_fidelity([("compose",)]) == "netns"


def test_clean_prints_what_it_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    removed = ["namespace wt-x-a", "directory y"]
    monkeypatch.setattr(
        "windtunnel.harness.orchestrate.teardown.clean.remove_leftovers", lambda _: removed
    )
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.containers.remove_leftovers", list)
    assert main(["clean", "--out", str(tmp_path)]) == exit_code.OK
    assert capsys.readouterr().out.splitlines() == [
        "removed namespace wt-x-a",
        "removed directory y",
        "2 leftovers removed",
    ]
