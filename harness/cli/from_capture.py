"""`windtunnel from-capture`: a scenario with the losses that a capture shows."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.render.table import echo

if TYPE_CHECKING:
    from windtunnel.harness.replay.from_capture import Captured


@click.command("from-capture", short_help="Make a scenario of the losses that a capture shows.")
@click.argument("capture", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("second", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The scenario file.  [default: the capture's name with .yaml, here]",
)
@click.option(
    "--stream",
    "stream_ids",
    type=click.IntRange(min=-(1 << 31), max=(1 << 31) - 1),
    multiple=True,
    help="Only this stream id; may be given more than once.",
)
@click.option("--force", is_flag=True, help="Write over the file if it is there.")
@click.option("--json", "as_json", is_flag=True, help="What was found as JSON on stdout.")
def from_capture(
    capture: Path,
    second: Path | None,
    out: Path | None,
    stream_ids: tuple[int, ...],
    force: bool,
    as_json: bool,
) -> int:
    """Make a scenario of CAPTURE, with the same losses, late and duplicate frames.

    Reads pcap and pcapng, plain or packed by gzip or xz. With SECOND, a capture of the same
    streams from their other end, each frame is followed from the one place to the other; which
    is nearer to the sender is found out, and their clocks need not agree. With one capture what
    became of a frame is inferred: what a NAK asks for and came again was lost, what came late by
    itself was late, what came twice without being asked for was copied.

    The scenario has the streams with their ids, term lengths, MTU and place of beginning, the
    lost ranges by first passage and by retransmission, and what was late by how much. It sends
    messages of its own: where those seen differed in length, frames begin elsewhere than they
    did, which the file's header says.

    \b
      windtunnel from-capture eth0.pcap --out bad-night.yaml
      windtunnel from-capture sender.pcapng.gz receiver.pcapng.gz
      windtunnel run bad-night.yaml --fidelity sim

    Exit codes: 0 written, 2 a file cannot be read or has no Aeron stream.
    """
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.replay.from_capture import from_captures
    from windtunnel.harness.replay.sightings import CaptureError

    target = out or Path(f"{capture.name.partition('.')[0] or 'capture'}.yaml")
    if target.exists() and not force:
        raise Failure(f"{target}: is there already: --force writes over it", exit_code.USAGE)
    files = [capture] if second is None else [capture, second]
    with one_line():
        try:
            made = from_captures(files, target, stream_ids)
        except CaptureError as error:
            raise Failure(str(error), exit_code.INCONCLUSIVE) from error
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(made.text, encoding="utf-8")
    _tell(made, target, as_json)
    return exit_code.OK


def _tell(made: "Captured", target: Path, as_json: bool) -> None:
    if as_json:
        facts = {"scenario": str(target), "streams": made.streams, "notes": made.notes}
        click.echo(json.dumps({"kind": "from-capture", **facts}))
        return
    for each in made.streams:
        how = "followed" if each["followed"] else "inferred"
        click.echo(
            f"stream {each['stream_id']}, session {each['session_id']}: {each['frames']} frames; "
            f"{how}: {each['lost']} lost, {each['late']} late, {each['copies']} copies"
        )
    for note in made.notes:
        echo(f"NOTE: {note}", err=True)
    echo(f"scenario: {target}")
    echo(f"again: windtunnel run {target} --fidelity sim")
