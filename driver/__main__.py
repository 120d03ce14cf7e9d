"""The `windtunnel-driver` command: runs a media driver until a signal or a client stops it.

It replaces `aeronmd` and reads the same settings. Exit codes: 0 after an orderly shutdown, 1 if it
could not start, stdout could not be written, or an agent failed.
"""

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

WAIT_INTERVAL_S = 1.0
"""Longest wait of the main thread. A signal just before a wait does not shorten the wait."""

USAGE = """\
usage: windtunnel-driver [-h] [-v] [--settings [--json]] [--dir DIRECTORY] [-Dname=value ...]
                         [PROPERTIES_FILE ...]

An Aeron media driver. Settings come from the environment (AERON_DIR, AERON_THREADING_MODE, ...),
from property files (aeron.dir=...) and from -D options; a later argument overrides an
earlier one. The driver shuts down in an orderly way on SIGINT, SIGTERM and SIGHUP.

  -h, --help     show this text
  -v, --version  show the version
  --settings     list every setting with its default and limits; --json prints JSON
  --dir DIR      directory of the driver's files (AERON_DIR)
  -Dname=value   set a property by its Java name (-Daeron.mtu.length=8k)

examples:
  windtunnel-driver --dir /dev/shm/one
  AERON_THREADING_MODE=SHARED windtunnel-driver -Daeron.term.buffer.length=64k driver.properties

Exit codes: 0 after an orderly shutdown, 1 if the driver could not start or an agent failed.
"""

BROKEN_PIPE = 141


def _information(arguments: Sequence[str]) -> str | None:
    """Return the text requested by --help, --version or --settings, or None if none of these
    options is given.
    """
    if "-h" in arguments or "--help" in arguments:
        return USAGE
    if "-v" in arguments or "--version" in arguments:
        from windtunnel.driver.media_driver.agent.system_counters import VERSION_TEXT

        return f"windtunnel-driver, compatible with Aeron {VERSION_TEXT}\n"
    if "--settings" in arguments:
        from windtunnel.driver.media_driver import settings_table

        return (
            settings_table.describe_json() if "--json" in arguments else settings_table.describe()
        )
    return None


def main() -> int:
    """Run the driver until it is shut down. Returns the exit code."""
    arguments = sys.argv[1:]
    information = _information(arguments)
    try:
        if information is None:
            return _run_driver(arguments)
        _print(information)
    except _StdoutError as error:
        # Python would write what is left in stdout again at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if information is not None and isinstance(error.__cause__, BrokenPipeError):
            return BROKEN_PIPE
        return _report(str(error))
    except OSError as error:
        from windtunnel.driver.kernels import cache_error

        advice = cache_error.advice(error)
        if not advice:
            raise
        return _report(f"{error.filename}: {error.strerror}{advice}")
    return 0


class _StdoutError(Exception):
    """Raised if stdout cannot be written. The message names it, and the reason."""


def _print(text: str) -> None:
    """Write to stdout, if it is open."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        raise _StdoutError(f"stdout: {error.strerror}") from error


def _report(text: str) -> int:
    """Write an error to stderr. Returns the exit code."""
    # Without a place for the message there is still the exit code.
    with suppress(OSError):
        print(f"windtunnel-driver: {text}", file=sys.stderr, flush=True)
    return 1


def _run_driver(arguments: Sequence[str]) -> int:
    # What startup creates stays until the end: no collection during startup, none of it later.
    gc.disable()
    # The driver makes no use of BLAS, whose threads would compete with startup. numpy reads this.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Agents would pause for milliseconds when they first write to a huge page.
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    from windtunnel.driver.base.errors import DriverError
    from windtunnel.driver.base.shutdown_signal import ShutdownSignal
    from windtunnel.driver.kernels import cache_error
    from windtunnel.driver.media_driver import settings_table
    from windtunnel.driver.media_driver.context import from_environment
    from windtunnel.driver.media_driver.media_driver import MediaDriver
    from windtunnel.driver.media_driver.settings import command_line

    try:
        # A property file may be a pipe that nobody writes to, which a signal must end.
        settings = command_line.read_given(os.environ, arguments)
        # A signal during startup stops the driver as soon as it has started.
        shutdown = ShutdownSignal.on_signals()
        context = from_environment(settings.texts, shared=settings.environment_variables())
        if context.print_configuration:
            _print(settings_table.configuration(context, settings.origin_of))
        driver = MediaDriver(context, shutdown_signal=shutdown)
    except (DriverError, OSError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        return _report(f"{error}{cache_error.advice(cause)}")
    except MemoryError as error:
        return _report(f"not enough memory (see `ulimit -v`): {error}")
    except KeyboardInterrupt:
        return _report("interrupted")
    gc.freeze()
    gc.enable()
    with driver:
        _print(f"driver ready pid={os.getpid()} dir={context.dir}\n")
        while not driver.wait(WAIT_INTERVAL_S):
            pass
    if driver.failure is not None:
        return _report(f"an agent failed: {driver.failure!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
