"""`windtunnel decisions`: prints the middlebox's decision log as JSON lines.

    {"time_ns": 17..., "action": "drop", "link": "a->b", "frame_type": "DATA", "attempt": 1, ...}

One line per decision, in order. To compare two runs with the same seed, use `--key`, which omits
everything that depends on time or on a driver's random choices.
"""

import json
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure

if TYPE_CHECKING:
    from windtunnel.harness.artifact.records import Records

KEY_FIELDS = ("action", "link", "frame_type", "stream_id", "position", "attempt", "rule")
"""Fields of a decision that depend only on the seed, if the decision is about the first
transmission of a frame that has a position."""


@click.command(short_help="Print the middlebox's decision log as JSON lines.")
@click.argument("run_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--key",
    is_flag=True,
    help="Print only what the seed determines, sorted. Runs with equal seeds print the same lines.",
)
def decisions(run_dir: Path, key: bool) -> None:
    """Print the decision log of RUN_DIR as JSON lines.

    Prints one line per frame that the middlebox did not forward unchanged: action, link, frame
    type, rule, session, stream, term id, term offset, position, transmission attempt. In a lab,
    and in a run with events that change links, also one line per change. If the log is truncated,
    its whole records are printed, and the exit code is 2.

    \b
      windtunnel decisions RUN_DIR | jq -r .action | sort | uniq -c
      diff <(windtunnel decisions --key RUN_1) <(windtunnel decisions --key RUN_2)
    """
    from windtunnel.harness.artifact.middlebox.decision import read_decisions, torn_text
    from windtunnel.harness.artifact.regular_file import untrusted_folder
    from windtunnel.harness.artifact.run_dir import RunDir

    run = RunDir(untrusted_folder(run_dir))
    records = read_decisions(run.decisions)
    if records is None:
        raise Failure(f"{run.decisions}: no decision log", exit_code.INCONCLUSIVE)
    try:
        rules, links = rule_ids(run.case), link_names(run.case)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Failure(f"{run.case}: cannot be parsed: {error}", exit_code.INCONCLUSIVE) from error
    rows = [as_row(record, rules, links) for record in records]
    changes = [] if key else change_rows(run.link_changes)
    # The log is in the order of the relay, which is almost that of the times.
    rows = list(merge(rows, changes, key=lambda row: row["time_ns"])) if changes else rows
    if key:
        # The number of retransmissions, and the order of frames without a position, depend on
        # timing; the decision about the first transmission of a frame depends only on the seed.
        exact = [row for row in rows if not row["timing_sensitive"] and row["attempt"] == 1]
        rows = [{name: row[name] for name in KEY_FIELDS} for row in exact]
        rows.sort(key=_by_frame)
    for row in rows:
        click.echo(json.dumps(row))
    if torn := torn_text(run.decisions):
        raise Failure(f"{run.decisions}: {torn}", exit_code.INCONCLUSIVE)
    if not len(records) and not changes:
        text = "no decisions: no rule in `faults` applied to a frame; the losses and delays of "
        click.echo(f"{text}impairments are not decisions, and are counted in ledger.json", err=True)


def change_rows(file: Path) -> list[dict[str, Any]]:
    """Return the changes of links, or an empty list if no link could change. Raises Failure for a
    damaged file.
    """
    from windtunnel.harness.artifact.documents import DocumentError
    from windtunnel.harness.scenario.resolved.link_change import LinkChanges

    try:
        found = LinkChanges.read(file)
    except DocumentError as error:
        raise Failure(f"{file}: {error}", exit_code.INCONCLUSIVE) from error
    return [
        {
            "time_ns": each.at_ns,
            "action": "change-link",
            "link": each.impairments.link,
            "impairments": each.impairments.model_dump(exclude={"link"}, exclude_defaults=True),
        }
        for each in (() if found is None else found.changes)
    ]


def _by_frame(row: dict[str, Any]) -> tuple[str, int, int, int]:
    return str(row["rule"]), row["stream_id"], row["position"], row["attempt"]


def rule_ids(case: Path) -> list[str]:
    """Return the ids of a run's fault rules in order, or an empty list if there is no case.json."""
    from windtunnel.harness.artifact.documents import read_document

    document = read_document(case) or {}
    return [str(rule.get("id", index)) for index, rule in enumerate(document.get("faults", []))]


def link_names(case: Path) -> list[str]:
    """Return the names of a run's link directions, in a list indexed by link direction code."""
    from windtunnel.harness.artifact.documents import read_document
    from windtunnel.harness.artifact.middlebox.decision import LINKS

    document = read_document(case) or {}
    ends = [link["between"] for link in document.get("links", [])]
    names = [f"{a}->{b}" for first, second in ends for a, b in ((first, second), (second, first))]
    return names or list(LINKS)


def as_row(record: "Records", rules: list[str], links: list[str]) -> dict[str, Any]:
    """Return a decision as a JSON-serializable dictionary with names in place of codes."""
    from windtunnel.harness.artifact.middlebox.decision import ACTIONS
    from windtunnel.harness.artifact.middlebox.frame_class import NAMES

    action, link, frame_type = (int(record[name]) for name in ("action", "link", "frame_type"))
    rule = int(record["rule"])
    return {
        "time_ns": int(record["time_ns"]),
        "action": ACTIONS.get(action, str(action)),
        "link": links[link] if link < len(links) else str(link),
        "frame_type": NAMES.get(frame_type, str(frame_type)),
        "rule": rules[rule] if rule < len(rules) else rule,
        "session_id": int(record["session_id"]),
        "stream_id": int(record["stream_id"]),
        "term_id": int(record["term_id"]),
        "term_offset": int(record["term_offset"]),
        "frame_length": int(record["frame_length"]),
        "position": int(record["position"]),
        "attempt": int(record["attempt"]),
        "flags": int(record["flags"]),
        "delay_ns": int(record["delay_ns"]),
        "detail": int(record["detail"]),
        "timing_sensitive": bool(record["timing_sensitive"]),
    }
