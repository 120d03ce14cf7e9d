"""A replay over real sockets loses the same first transmissions, whatever the timing."""

import json

import pytest
import yaml

from tests.unit.harness.replay.test_rules import DOCUMENT, rule
from windtunnel.harness.artifact.middlebox.decision import NO_POSITION, read_decisions
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
    # Kernels are compiled on a machine's first run.
    pytest.mark.timeout(600),
]
FAULTS = [
    rule("lose", {"drop": "4%"}, "DATA"),
    rule("break", {"corrupt": {"share": "2%", "field": "reserved"}}, "DATA"),
    {**rule("timed", {"drop": "30%"}, "DATA"), "when": {"after": "1ms", "for": "20ms"}},
]


def first_decisions(folder: RunDir):
    """Return (position, length, action, detail) of the decisions about first transmissions."""
    rows = read_decisions(folder.decisions)
    rows = rows[(rows["position"] != NO_POSITION) & (rows["attempt"] == 1)]
    names = ("position", "frame_length", "action", "detail")
    return {tuple(int(row[name]) for name in names) for row in rows}


def test_a_replay_applies_the_same_decisions_whatever_the_timing(tmp_path, capsys):
    traffic = {**DOCUMENT["traffic"][0], "content": {"bytes": "600KiB"}}
    document = {**DOCUMENT, "traffic": [traffic], "faults": FAULTS, "fidelity": ["netns"]}
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump(document))
    out = tmp_path / "runs"
    (created,) = run_suite([path], fidelity="netns", out=out).runs
    first = RunDir(created.run_dir)
    assert len(first_decisions(first)) > 20
    capsys.readouterr()
    main(["replay", str(first.path), "--out", str(out), "--json"])
    run, suite, replay = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    replayed = RunDir(tmp_path / suite["runs"][0])
    assert first_decisions(replayed) == first_decisions(first)
    assert replay["added"] == 0
    assert replay["repeated"] >= len(first_decisions(first))
    assert {each["attempt"] for each in replay["never_came"] if "attempt" in each} <= set(
        range(2, 99)
    )
    manifest = Manifest.read(replayed.manifest)
    assert manifest is not None
    first_manifest = Manifest.read(first.manifest)
    assert first_manifest is not None
    assert manifest.replays == first_manifest.run_id
    assert run["outcome"] in ("PASS", "INCONCLUSIVE"), run
