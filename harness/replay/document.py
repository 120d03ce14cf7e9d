"""Reads and writes scenario files as plain values, with a comment as a header.

`parse` parses a generated text, to ensure that it is a valid scenario.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from windtunnel.harness.artifact.escaped_text import escaped
from windtunnel.harness.replay.rules import Document
from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.units import format_bytes
from windtunnel.harness.scenario.shorthand import expand
from windtunnel.harness.scenario.yaml_document import YamlDocument, read_yaml

WIDTH = 96
KEYS = (
    "schema", "name", "about", "seeds", "fidelity", "network", "archives", "applications",
    "traffic", "observe", "observe_all", "faults", "exercises", "events", "nemesis", "drivers",
    "timeouts", "expect", "checks", "budget",
)  # fmt: skip
"""All top-level keys of a scenario file, in the order in which they are written."""


def read_document(file: Path) -> Document:
    """Read a scenario file as plain values in their full forms. Raises ScenarioError if it cannot
    be read.
    """
    document = YamlDocument(read_yaml(file), str(file))
    found = document.value
    if not isinstance(found, dict):
        raise ScenarioError([f"{file}: expected a table, found {type(found).__name__}"])
    problems = expand(found)
    if problems:
        raise ScenarioError(document.locate(problems))
    return found


def reduced(
    document: Document,
    like: Scenario,
    *,
    name: str,
    about: str,
    seed: int,
    fidelity: Sequence[str],
    faults: Sequence[Document],
) -> Document:
    """Return a copy of a scenario document that has only the streams and checks of the scenario
    `like`, and the given fault rules.

    `like` contains some of the document's streams, which may have fewer bytes. Own checks are left
    out: their files are beside the original scenario.
    """
    lengths = {each.id: each.content.total_bytes for each in like.traffic}
    traffic = [
        _with_bytes(each, lengths[each["id"]])
        for each in document["traffic"]
        if each["id"] in lengths
    ]
    expect = [
        {check.name: dict(check.arguments)} if check.arguments else check.name
        for check in like.expect
    ]
    changed = {
        "name": name,
        "about": about,
        "seeds": {"root": seed},
        "fidelity": list(fidelity),
        "traffic": traffic,
        "faults": list(faults),
        "expect": expect,
    }
    if not faults:
        del changed["faults"]
    kept = {key: value for key, value in document.items() if key not in ("faults", "checks")}
    whole = {**kept, **changed}
    return {key: whole[key] for key in KEYS if key in whole}


def _with_bytes(traffic: Document, total_bytes: int) -> Document:
    """Return a stream's table with a different total length. The table of an archive replay has no
    length and is returned unchanged.
    """
    if "content" not in traffic:
        return traffic
    return {**traffic, "content": {**traffic["content"], "bytes": format_bytes(total_bytes)}}


def text_of(document: Document, header: Sequence[str]) -> str:
    """Return the text of a scenario file. `header` contains the lines of the comment at its
    beginning.
    """
    comment = "".join(f"# {escaped(line)}".rstrip() + "\n" for line in header)
    body: str = yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        width=WIDTH,
        allow_unicode=True,
    )
    return comment + body


def parse(text: str) -> Scenario:
    """Parse the text of a scenario that this module has generated."""
    return parse_scenario(text, "the scenario that was written")


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML carries no types
    """A YAML dumper that writes repeated values in full, instead of using anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
