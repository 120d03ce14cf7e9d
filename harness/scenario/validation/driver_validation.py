"""Validates the settings of the media drivers on each host."""

from collections.abc import Iterator

from windtunnel.harness.scenario.applications.driver_settings import SET_OTHERWISE, SETTING_NAMES
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem, unknown_name


def driver_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield all problems with the settings of a scenario's drivers."""
    if scenario.drivers and (scenario.traffic or scenario.exercises):
        text = "`traffic` and `exercises` are judged with the default settings: use parameters of "
        yield Problem(("drivers",), f"{text}channels, or a scenario with applications only")
    hosts = scenario.network.hosts
    for host, settings in scenario.drivers.items():
        if host not in hosts:
            hint = f"the hosts are {', '.join(hosts)}"
            text = unknown_name("a host of the network", host, hosts, hint)
            yield Problem(("drivers", host), text)
        for name in settings:
            path: Path = ("drivers", host, name)
            if name in SET_OTHERWISE:
                yield Problem(path, f"this setting is a timeout: {SET_OTHERWISE[name]}")
            elif name not in SETTING_NAMES:
                hint = "`windtunnel-driver --settings` lists them"
                yield Problem(path, unknown_name("a driver's setting", name, SETTING_NAMES, hint))
