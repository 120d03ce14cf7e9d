"""Validates a scenario's applications: hosts, placeholders, and what ends the run."""

from collections.abc import Iterator

from windtunnel.harness.scenario.applications.application import Application
from windtunnel.harness.scenario.applications.nemesis import (
    LINK_ACTS,
    PREFIX,
    nemesis_problems,
)
from windtunnel.harness.scenario.applications.placeholder import (
    AERON_DIRECTORY,
    AT_START,
)
from windtunnel.harness.scenario.schema.channel import placeholders
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem, unknown_name
from windtunnel.harness.scenario.validation.event_validation import impairment_problems
from windtunnel.harness.scenario.validation.link_directions import all_directions

FIDELITIES = ("netns", "compose")
"""The fidelity levels that have applications."""
ONLY_CONTAINERS = ("compose",)


def application_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield all problems with a scenario's applications, or with a scenario that has neither
    applications nor traffic.
    """
    yield from _nemesis(scenario)
    if not scenario.applications:
        for key, value in (("traffic", scenario.traffic), ("expect", scenario.expect)):
            if not value:
                yield Problem((key,), "this key is missing")
        return
    for index, each in enumerate(scenario.fidelity):
        if each not in FIDELITIES:
            levels = ", ".join(FIDELITIES)
            text = f"{each} does not start applications: write `fidelity: [{levels}]`"
            yield Problem(("fidelity", index), text)
    for index, application in enumerate(scenario.applications):
        yield from _application(scenario, application, ("applications", index))
    for index, event in enumerate(scenario.events):
        name, host = event.whom.application, event.whom.host
        ids = [each.id for each in scenario.applications if each.host == host]
        if name is not None and name not in ids:
            what = f"an application on host {host}"
            hint = f"they are {', '.join(ids)}" if ids else "there is none"
            path: Path = ("events", index, "whom", "application")
            yield Problem(path, unknown_name(what, name, ids, hint))
    yield from _without_traffic(scenario)


def _nemesis(scenario: Scenario) -> Iterator[Problem]:
    """Yield the problems with what draws events."""
    nemesis = scenario.nemesis
    if nemesis is not None and (scenario.traffic or not scenario.applications):
        text = "the nemesis needs `applications`, and no `traffic`: write the `events` instead"
        yield Problem(("nemesis",), text)
    elif nemesis is not None:
        hosts, wall_ns = scenario.network.hosts, scenario.budget.wall_ns
        yield from nemesis_problems(nemesis, scenario.applications, hosts, wall_ns)
        for index, impair in enumerate(nemesis.impair):
            directions = list(all_directions(scenario))
            at: Path = ("nemesis", "impair", index)
            yield from impairment_problems(scenario, impair, directions, at)
        for index, event in enumerate(scenario.events):
            if event.id.startswith(PREFIX):
                text = f"ids that begin with {PREFIX!r} are those of drawn events"
                yield Problem(("events", index, "id"), text)
    uses_netem = any(each.backend == "netem" for each in scenario.network.all_links)
    if uses_netem and nemesis is not None and nemesis.changes_links:
        text = "only the relay changes links during a run: write `backend: relay`, or `acts` "
        yield Problem(("nemesis", "acts"), f"{text}without {' and '.join(LINK_ACTS)}")


def _application(scenario: Scenario, application: Application, path: Path) -> Iterator[Problem]:
    hosts = scenario.network.hosts
    if application.host not in hosts:
        hint = f"the hosts are {', '.join(hosts)}"
        text = unknown_name("a host of the network", application.host, hosts, hint)
        yield Problem((*path, "on"), text)
    texts = [((*path, "command", index), each) for index, each in enumerate(application.command)]
    texts += [((*path, "env", name), each) for name, each in application.env.items()]
    known = (*hosts, *AT_START)
    for at, text in texts:
        for name in placeholders(text):
            if name not in known:
                hint = f"the names are {', '.join(known)}"
                yield Problem(at, unknown_name("a host or directory in ${...}", name, known, hint))
            elif name == AERON_DIRECTORY and application.driver == "none":
                yield Problem(at, f"`driver: none` has no ${{{name}}}: use shared or embedded")
    yield from _program(scenario, application, path)


def _program(scenario: Scenario, application: Application, path: Path) -> Iterator[Problem]:
    """Yield the problems with what an application starts, and in which container."""
    if application.command and not application.command[0]:
        yield Problem((*path, "command", 0), "expected the name of a program, found an empty text")
    has_image = application.image is not None or application.build is not None
    if application.compose is not None:
        yield Problem((*path, "compose"), "services are taken from a file, and this is text")
    if application.image is not None and application.build is not None:
        yield Problem((*path, "build"), "expected `image` or `build`, found both: remove one")
    if not application.command and not has_image:
        yield Problem((*path, "command"), "this key is missing, and there is no `image` or `build`")
    if application.user is not None and not has_image:
        text = "another user than root needs an `image` of yours: that of Windtunnel is root's"
        yield Problem((*path, "user"), text)
    if application.working_dir is not None and not has_image:
        text = "this key needs an `image` or `build`: with that of Windtunnel, it starts in /work"
        yield Problem((*path, "working_dir"), text)
    if scenario.fidelity == ONLY_CONTAINERS:
        return
    for key, is_given in (
        ("image", application.image is not None),
        ("build", application.build is not None),
        ("user", application.user is not None),
        ("limits", bool(application.limits.model_fields_set)),
    ):
        if is_given:
            yield Problem((*path, key), "this key needs a container: write `fidelity: [compose]`")


def _without_traffic(scenario: Scenario) -> Iterator[Problem]:
    """Yield the problems with a scenario that has applications, but no traffic."""
    if scenario.traffic:
        if not scenario.expect:
            yield Problem(("expect",), "this key is missing")
        return
    if not any(each.expect.ends_by_itself for each in scenario.applications):
        text = "nothing ends the run: expected `traffic`, or an application with `expect: "
        text += "{ends_by_itself: true}`, for example one with `command: [sleep, '10']`"
        yield Problem(("applications",), text)
    for index, fault in enumerate(scenario.faults):
        text = f"rule {fault.id!r} applies to no frame, because the scenario has no `traffic`: use "
        yield Problem(("faults", index), f"{text}the link's `impairments`, or add traffic")
    for index, _ in enumerate(scenario.expect):
        text = "checks apply to `traffic`, which the scenario does not have: remove it"
        yield Problem(("expect", index), text)
