"""`windtunnel explain`: what a scenario means, with nothing left open; starts nothing."""

import click

from windtunnel.harness.cli import exit_code, scenarios

_STAND_IN_ADDRESSES = tuple(f"192.0.2.{last}" for last in range(1, 9))
"""From the block for documentation: real ones are derived from the run id."""


@click.command(short_help="Explain a scenario: every value, and what its rules will do.")
@click.argument("file", shell_complete=scenarios.complete)
@click.option("--seed", type=click.IntRange(min=0), help="[default: the scenario's own]")
@click.option("--json", "as_json", is_flag=True, help="The resolved case as JSON.")
@click.option("--schema", is_flag=True, help="The JSON Schema of scenario files instead.")
def explain(file: str, seed: int | None, as_json: bool, schema: bool) -> int:
    """Explain a scenario FILE (or name): every value, what its rules will do, and how often.

    Checks the file as `run` would: a wrong one is refused with file and line.
    """
    import json

    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.cli.render.table import echo
    from windtunnel.harness.scenario.explain.explain import explain as in_words
    from windtunnel.harness.scenario.loader import load_scenario
    from windtunnel.harness.scenario.resolved.case import Payload, resolve
    from windtunnel.harness.scenario.schema.model import Scenario

    if schema:
        click.echo(json.dumps(Scenario.model_json_schema(by_alias=True), indent=1))
        return exit_code.OK
    with one_line():
        loaded = load_scenario(scenarios.find(file))
        case = resolve(
            loaded,
            seed=loaded.seeds.root if seed is None else seed,
            fidelity=loaded.fidelity[0],
            addresses=dict(zip(loaded.network.hosts, _STAND_IN_ADDRESSES, strict=False)),
            payload=Payload(
                path="(chosen by `windtunnel run --payload`)", sha256="", length_bytes=0
            ),
        )
    if as_json:
        click.echo(json.dumps(json.loads(case.to_json()), indent=1))
    else:
        echo(in_words(case))
    return exit_code.OK
