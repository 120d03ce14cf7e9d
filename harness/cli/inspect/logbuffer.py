"""`windtunnel logbuffer FILE`: shows a log buffer's metadata and frames, like Aeron's
LogInspector."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.inspect.look import EXIT_CODES, echo_line, json_option, reading

if TYPE_CHECKING:
    from windtunnel.harness.dissect.driver_files.log_buffer import LogBuffer, LogFrame, TermWalk

FRAME_OFFSET = re.compile(r"([0-2]):(\d{1,10})")
LIMITED = "stopped at --limit: more frames follow"
TITLES = (
    f"{'offset':>10}  {'position':>14}  {'type':<4}  {'flags':<8}  {'length':>10}  "
    f"{'term offset':>11}  {'session':>11}  {'stream':>11}  {'term id':>11}  reserved value"
)


class FrameOffset(click.ParamType):  # type: ignore[type-arg]  # generic in newer click
    """A click parameter type for a frame's start: term index, and offset within the term."""

    name = "TERM:OFFSET"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, int]:
        found = FRAME_OFFSET.fullmatch(str(value))
        if found is None:
            self.fail(f"expected TERM:OFFSET such as 0:1408, found {value!r}")
        return int(found[1]), int(found[2])


@click.command(short_help="Show the metadata and frames of a log buffer file.", epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@click.option(
    "--term", type=click.IntRange(0, 2), help="Show only the term with this index (0 to 2)."
)
@click.option(
    "--limit", type=click.IntRange(min=0), help="Maximum number of frames to show for each term."
)
@click.option(
    "--over-zeroes", is_flag=True, help="Skip zeros, to show the frames after a gap in an image."
)
@click.option(
    "--hexdump",
    type=FrameOffset(),
    help="Show only the bytes of the frame that starts at this term and offset.",
)
def logbuffer(
    file: Path,
    as_json: bool,
    term: int | None,
    limit: int | None,
    over_zeroes: bool,
    hexdump: tuple[int, int] | None,
) -> int:
    """Show the log buffer FILE: metadata, tails, and the frames of its three terms.

    Log buffers are in publications/ and images/ of a driver's directory, and can be read while in
    use. Frames are shown from the start of each term to the first zeros or the term's end, so the
    active term may show frames of an older term after the newest frame.

    \b
      windtunnel logbuffer /dev/shm/aeron-me/publications/4.logbuffer
      windtunnel logbuffer 5.logbuffer --term 0 --limit 20
      windtunnel logbuffer 5.logbuffer --hexdump 0:1408
      windtunnel logbuffer 5.logbuffer --json | jq '.terms[].frames | length'
    """
    from windtunnel.harness.inspect.log_source import open_log_buffer

    with reading(), open_log_buffer(file) as log:
        if hexdump is not None:
            _show_one(log, file, *hexdump, as_json)
            return exit_code.OK
        walks = _walks(log, term, over_zeroes)
        show = _show_json if as_json else _show_text
        show(log, file, walks, limit)
    _check_not_truncated(file, walks)
    return exit_code.OK


def _walks(log: "LogBuffer", term: int | None, over_zeroes: bool) -> "dict[int, TermWalk]":
    from windtunnel.harness.dissect.driver_files.log_buffer import TERM_COUNT, TermWalk

    indices = range(TERM_COUNT) if term is None else (term,)
    return {index: TermWalk(log, index, over_zeroes=over_zeroes) for index in indices}


def _check_not_truncated(file: Path, walks: "dict[int, TermWalk]") -> None:
    from windtunnel.harness.dissect.driver_files.log_buffer import CUT_SHORT

    if any(walk.ended_because == CUT_SHORT for walk in walks.values()):
        raise Failure(
            f"{file}: the file was truncated while it was being read", exit_code.INCONCLUSIVE
        )


def _frames(walk: "TermWalk", limit: int | None) -> "Iterator[LogFrame]":
    """Yield at most `limit` frames of a term. If there are more, `walk` records that the limit was
    reached.
    """
    for count, frame in enumerate(walk):
        if count == limit:
            walk.ended_at, walk.ended_because = frame.offset, LIMITED
            return
        yield frame


def _type_name(type_code: int) -> str:
    from windtunnel.harness.dissect.frames.layout import BY_TYPE_CODE

    known = BY_TYPE_CODE.get(type_code)
    return known.name if known else str(type_code)


def _frame_document(log: "LogBuffer", frame: "LogFrame") -> dict[str, Any]:
    document = asdict(frame)
    document["type"] = _type_name(frame.type)
    document["position"] = log.position(frame.term_id, frame.offset)
    return document


def _frame_line(log: "LogBuffer", frame: "LogFrame") -> str:
    return (
        f"{frame.offset:>10}  {log.position(frame.term_id, frame.offset):>14}  "
        f"{_type_name(frame.type):<4}  {frame.flags:08b}  {frame.frame_length:>10}  "
        f"{frame.term_offset:>11}  {frame.session_id:>11}  {frame.stream_id:>11}  "
        f"{frame.term_id:>11}  {frame.reserved_value}"
    )


def _show_text(
    log: "LogBuffer", file: Path, walks: "dict[int, TermWalk]", limit: int | None
) -> None:
    from windtunnel.harness.dissect.driver_files.log_buffer import LOG_TYPES

    echo_line(f"{file}: {LOG_TYPES.get(log.metadata['type'], 'log of unknown type')}")
    for name, value in log.metadata.items():
        echo_line(f"  {name:<36}{value}")
    echo_line(f"  {'active_term_index':<36}{log.active_term_index}")
    echo_line("default header")
    echo_line(f"  {TITLES}")
    echo_line(f"  {_frame_line(log, log.default_header)}")
    for tail in log.tails():
        echo_line(
            f"tail of term {tail.term_index}: term id {tail.term_id}, offset {tail.term_offset}, "
            f"position {tail.position}, raw {tail.raw_tail}"
        )
    for index, walk in walks.items():
        echo_line(f"term {index}")
        is_titled = False
        for frame in _frames(walk, limit):
            if not is_titled:
                echo_line(f"  {TITLES}")
                is_titled = True
            echo_line(f"  {_frame_line(log, frame)}")
        echo_line(f"  {walk.ended_at:>10}  {walk.ended_because}")


def _show_json(
    log: "LogBuffer", file: Path, walks: "dict[int, TermWalk]", limit: int | None
) -> None:
    """Write one JSON document incrementally, because a log may have a hundred million frames."""
    from windtunnel.harness.dissect.driver_files.log_buffer import LOG_TYPES

    head = {
        "schema": "windtunnel-logbuffer/1",
        "file": str(file),
        "log_type": LOG_TYPES.get(log.metadata["type"], "unknown"),
        "metadata": {**log.metadata, "active_term_index": log.active_term_index},
        "default_header": _frame_document(log, log.default_header),
        "tails": [asdict(tail) for tail in log.tails()],
    }
    write = sys.stdout.write
    write(json.dumps(head)[:-1] + ', "terms": [')
    for number, (index, walk) in enumerate(walks.items()):
        write(f'{", " if number else ""}{{"term_index": {index}, "frames": [')
        for count, frame in enumerate(_frames(walk, limit)):
            write((", " if count else "") + json.dumps(_frame_document(log, frame)))
        end = {"ended_at": walk.ended_at, "ended_because": walk.ended_because}
        write("], " + json.dumps(end)[1:])
    write("]}\n")


def _show_one(log: "LogBuffer", file: Path, index: int, offset: int, as_json: bool) -> None:
    """Show one frame's header and all its bytes, or only the header of a PAD frame."""
    frame = _frame_at(log, file, index, offset)
    start, end = _bytes_of(log, frame)
    if as_json:
        content = log.read_at(start, end - start)
        document = {"file": str(file), **_frame_document(log, frame), "hex": content.hex()}
        click.echo(json.dumps({"schema": "windtunnel-logbuffer-frame/1", **document}))
        return
    echo_line(TITLES)
    echo_line(_frame_line(log, frame))
    for line in hexdump_lines(log, start, end):
        echo_line(line)


def _bytes_of(log: "LogBuffer", frame: "LogFrame") -> tuple[int, int]:
    from windtunnel.harness.dissect.frames.layout import DATA_HEADER_LENGTH, PAD

    start = frame.term_index * log.term_length + frame.offset
    is_pad = frame.type == PAD.type_code
    return start, start + (DATA_HEADER_LENGTH if is_pad else frame.frame_length)


def _frame_at(log: "LogBuffer", file: Path, index: int, offset: int) -> "LogFrame":
    """Return the frame that starts at an offset. If no frame starts there, raises a Failure that
    names the preceding frame.
    """
    from windtunnel.harness.dissect.driver_files.log_buffer import TermWalk

    walk = TermWalk(log, index, over_zeroes=True)
    before = None
    for frame in walk:
        if frame.offset == offset:
            return frame
        if frame.offset > offset:
            break
        before = frame
    nearest = f"; the frame before begins at {index}:{before.offset}" if before else ""
    if walk.ended_at and walk.ended_at <= offset:
        nearest += f", and the frames end at {index}:{walk.ended_at}: {walk.ended_because}"
    raise Failure(f"{file}: no frame begins at {index}:{offset}{nearest}", exit_code.NOTHING)


def hexdump_lines(log: "LogBuffer", start: int, end: int) -> Iterator[str]:
    """Yield lines of a hex dump: 16 bytes each, in hexadecimal and as text. `*` stands for repeated
    lines.
    """
    previous = b""
    is_repeating = False
    for at in range(start, end, 16):
        row = log.read_at(at, min(16, end - at))
        if row == previous and len(row) == 16 and at + 16 < end:
            if not is_repeating:
                yield "*"
            is_repeating = True
            continue
        is_repeating, previous = False, row
        left = row[:8].hex(" ")
        right = row[8:].hex(" ")
        text = "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in row)
        yield f"{at:08x}  {left:<23}  {right:<23}  |{text}|"
    yield f"{end:08x}"
