"""The process of one load generator in a benchmark.

    python -m windtunnel.harness.workload.bench.bench_load ROLE
           --aeron-dir D --board FILE
           --channel C --stream-id N --message-length L [--reply-channel C] [--idle yield]
           [--control-channel C] [--message-count N] [--client windtunnel|pyaeron]
           [--streams N] [--sources N] [--source I] [--rate R]

The roles are source, sink, ping, pong, offer, poll and archive.

The load reports its progress in its counter board file, and ends when the file has a stop command.
Exit codes: 0 if it was stopped, 1 on a fault, which is reported in the file or on stderr.
"""

import gc
import sys

from windtunnel.driver.base.errors import DriverError
from windtunnel.harness.artifact.run.bench_board import Board, Fault
from windtunnel.harness.workload.bench import (
    bench_archive,
    bench_client,
    bench_echo,
    bench_options,
    bench_pyaeron,
    bench_stream,
)

RUNS = {
    "source": bench_stream.run_source,
    "sink": bench_stream.run_sink,
    "ping": bench_echo.run_ping,
    "pong": bench_echo.run_pong,
    "offer": bench_client.run_offer,
    "poll": bench_client.run_poll,
    "archive": bench_archive.run_archive,
}
assert RUNS.keys() == set(bench_options.ROLES)
PYAERON_RUNS = RUNS | {
    "source": bench_pyaeron.run_source,
    "sink": bench_pyaeron.run_sink,
    "ping": bench_pyaeron.run_ping,
    "pong": bench_pyaeron.run_pong,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one load generator to its end. Returns the exit code."""
    options = bench_options.parse(arguments)
    board = Board(options.board)
    # A garbage collection would look like a slow driver, and a load creates almost no garbage.
    gc.disable()
    load = bench_stream.Load(options, board)
    try:
        with bench_client.connect(options) as aeron:
            runs = PYAERON_RUNS if options.client == "pyaeron" else RUNS
            runs[options.role](load, aeron)
            load.stay(aeron)
    except DriverError as error:
        print(f"{options.role}: {error}", file=sys.stderr)
        return 1
    return 0 if board.fault is Fault.NONE else 1


if __name__ == "__main__":
    sys.exit(main())
