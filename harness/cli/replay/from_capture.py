"""`windtunnel from-capture`: writes a scenario that reproduces the losses in a capture."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.options import in_existing_folder
from windtunnel.harness.cli.render.table import echo

if TYPE_CHECKING:
    from windtunnel.harness.replay.from_capture import Captured


@click.command("from-capture", short_help="Make a scenario from the losses in a capture.")
@click.argument("capture", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("second", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=in_existing_folder,
    help="Scenario file to write.  [default: CAPTURE's name with .yaml, in the current folder]",
)
@click.option(
    "--stream",
    "stream_ids",
    type=click.IntRange(min=-(1 << 31), max=(1 << 31) - 1),
    multiple=True,
    help="Include only the stream with this id. Can be repeated.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
def from_capture(
    capture: Path,
    second: Path | None,
    out: Path | None,
    stream_ids: tuple[int, ...],
    force: bool,
    as_json: bool,
) -> int:
    """Write a scenario with the same lost, late and duplicate frames as CAPTURE.

    Reads pcap and pcapng, plain or compressed with gzip or xz. SECOND is a capture of the same
    streams at the other host. With two captures, each frame is matched between them. The capture
    that is nearer to the sender is detected, and the clocks need not agree. With one capture, the
    outcome of each frame is estimated: a frame that was retransmitted after a NAK was lost; a frame
    that arrived out of order without a NAK was delayed; a frame that arrived twice without a NAK
    was duplicated. Repeated NAKs do not count as further losses: how many retransmits were
    lost is estimated from the time in which NAKs had no answer.

    The scenario has the streams with their ids, term lengths, MTUs, start positions, mean rates and
    receiver windows, the lost ranges of transmissions and of retransmissions, and the delays. Half
    of the round trip is the link's delay in each direction: two captures show the round trip
    between them, one capture the time from a gap to its NAK and from there to the retransmit. The
    messages are generated. If the captured messages differ in length, the scenario's frame
    boundaries differ from the capture's. A comment in the file names what is left out.

    \b
      windtunnel from-capture eth0.pcap --out bad-night.yaml
      windtunnel from-capture sender.pcapng.gz receiver.pcapng.gz
      windtunnel run bad-night.yaml --fidelity sim

    Exit codes: 0 written; 2 a capture cannot be read or contains no Aeron stream, or it is damaged
    or truncated, and the scenario is that of the rest; 64 invalid command line, for example if
    CAPTURE is a folder.
    """
    from windtunnel.harness.artifact.regular_file import real_path, replace_file
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.replay.capture_frames import CaptureError
    from windtunnel.harness.replay.from_capture import from_captures

    target = out or Path(f"{capture.name.partition('.')[0] or 'capture'}.yaml")
    if os.path.lexists(target) and not force:
        raise Failure(f"{target}: already exists: use --force to overwrite it", exit_code.USAGE)
    files = [capture] if second is None else [capture, second]
    with one_line():
        try:
            result = from_captures(files, target, stream_ids)
        except CaptureError as error:
            raise Failure(str(error), exit_code.INCONCLUSIVE) from error
        # A link in place of the file is replaced. The folder that the user names may be a link.
        replace_file(real_path(target.parent) / target.name, result.text)
    _print(result, target, as_json)
    return exit_code.INCONCLUSIVE if result.damage else exit_code.OK


def _path_text(stream: dict[str, Any]) -> str:
    """Describe a captured stream's rate, window and round trip, as far as they are known."""
    rate, window, trip_ns = (
        stream[name] for name in ("bytes_per_s", "window_bytes", "round_trip_ns")
    )
    parts = [
        rate_text(rate) if rate else "rate unknown",
        f"window {window:,} bytes" if window else "window unknown",
        f"round trip {trip_ns / 1e6:,.3f} ms" if trip_ns else "round trip negligible or unknown",
    ]
    return ", ".join(parts)


def _print(result: "Captured", target: Path, as_json: bool) -> None:
    if as_json:
        facts = {"scenario": str(target), "streams": result.streams, "notes": result.notes}
        click.echo(json.dumps({"kind": "from-capture", **facts}))
        return
    for each in result.streams:
        method = "matched" if each["followed"] else "estimated"
        click.echo(
            f"stream {each['stream_id']}, session {each['session_id']}: {each['frames']} frames; "
            f"{method}: {each['lost']} lost, {each['late']} late, {each['copies']} duplicates"
        )
        echo(f"  {_path_text(each)}")
    for note in result.notes:
        echo(f"NOTE: {note}", err=True)
    echo(f"scenario: {target}")
    echo(f"to run it: windtunnel run {target} --fidelity sim")
