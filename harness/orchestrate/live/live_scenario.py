"""The scenario of a live lab: the options of a program, validated like a scenario file.

    options of the program --text--> parse, as of a file --> Scenario without applications

The program starts applications later. They and the events are added to the documents of the run
folder at its end.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from windtunnel.harness.orchestrate.fidelity import NETNS
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.scenario.applications.application import Application
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.yaml_document import ScenarioError

SOURCE = "lab"
WALL = "1440min"
_MARK = re.compile(
    rf"^{SOURCE}:\d+:\d+: (applications\[0\]\.|network\.links?(\[\d+\])?\.impairments\.both\.)?"
)
_STAND_IN = {"command": ["true"], "expect": {"ends_by_itself": True}}
"""An application, without which a scenario is not valid. It is never started."""


class OptionError(LabError):
    """Raised if a program has requested an invalid lab, link or application."""


def live_scenario(options: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a lab. Raises OptionError with all problems of its options."""
    document = document_of(options)
    hosts = options.get("hosts", ())
    stand_ins = [
        {"id": f"stand-in-{index}", "on": host, **_STAND_IN} for index, host in enumerate(hosts)
    ]
    scenario = _parse({**document, "applications": stand_ins})
    return scenario.model_copy(update={"applications": ()})


def document_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario of a lab as a document, without applications."""
    links = list(options.get("links", ()))
    document: dict[str, Any] = {
        "schema": "windtunnel/1",
        "name": options.get("name", "lab"),
        "about": options.get("about") or "A lab that a program controlled.",
        "seeds": {"root": options.get("seed", 0)},
        "fidelity": [options.get("fidelity") or NETNS],
        "network": {"hosts": list(options.get("hosts", ()))},
    }
    if len(links) == 1:
        document["network"]["link"] = links[0]
    else:
        document["network"]["links"] = links
    for key in ("observe", "timeouts", "drivers"):
        if options.get(key):
            document[key] = options[key]
    document["budget"] = {"wall": WALL}
    return document


def require_impairments(between: Sequence[str], impairments: Mapping[str, Any]) -> Scenario:
    """Return a scenario whose only link has these impairments in both directions. Raises
    OptionError if they are not valid.
    """
    link = {"between": list(between), "impairments": {"both": dict(impairments)}}
    return live_scenario({"hosts": list(between), "links": [link]})


def require_application(
    hosts: Sequence[str], table: Mapping[str, Any], fidelity: str = NETNS
) -> Application:
    """Return an application as a scenario has it. Raises OptionError if it is not valid."""
    pairs = [list(each) for each in itertools.pairwise(hosts)]
    links = [{"between": each} for each in pairs]
    stand_in = {"id": "stand-in", "on": hosts[0], **_STAND_IN}
    document = document_of({"hosts": hosts, "links": links, "fidelity": fidelity})
    return _parse({**document, "applications": [table, stand_in]}).applications[0]


def _shown(problem: str) -> str:
    """Return a problem without its place, since the text was never a file."""
    return _MARK.sub("", problem)


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as the text of a scenario file. Raises OptionError for values that no file
    has.
    """
    try:
        # Values that occur twice are written twice, since files have no anchors.
        plain = json.loads(json.dumps(document))
    except (TypeError, ValueError) as error:
        raise OptionError(f"expected plain values: {error}") from error
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return text


def _parse(document: Mapping[str, Any]) -> Scenario:
    try:
        return parse_scenario(text_of(document), SOURCE)
    except ScenarioError as error:
        raise OptionError("; ".join(map(_shown, error.errors))) from error
