"""The process `windtunnel-driver`: settings in, a media driver until a signal or a client ends it.

It stands where `aeronmd` stands and reads the same settings. Exit codes: 0 after an orderly stop,
1 when it could not start or an agent failed.
"""

import os
import sys
from collections.abc import Sequence

LOOK_INTERVAL_S = 1.0
"""A signal wakes the main thread at once, unless it comes as that is about to sleep."""

USAGE = """\
usage: windtunnel-driver [-h] [-v] [--settings [--json]] [--dir DIRECTORY] [-Dname=value ...]
                         [PROPERTIES_FILE ...]

An Aeron media driver. Settings come from the environment (AERON_DIR, AERON_THREADING_MODE, ...),
from property files (aeron.dir=...) and from -D options; of the command line, the later wins. It
stops in good order on SIGINT and SIGTERM.

  -h, --help     show this text
  -v, --version  show the version
  --settings     list every setting with its default and its bounds; with --json for machines
  --dir DIR      where the driver's files live (AERON_DIR)
  -Dname=value   a setting by the name of its Java property (-Daeron.mtu.length=8k)

examples:
  windtunnel-driver --dir /dev/shm/one
  AERON_THREADING_MODE=SHARED windtunnel-driver -Daeron.term.buffer.length=64k driver.properties

Exit codes: 0 after an orderly stop, 1 when it could not start or an agent failed.
"""


def _show(arguments: Sequence[str]) -> str | None:
    """The text that an option asks for instead of a driver."""
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
    """Run the driver until it is told to stop."""
    arguments = sys.argv[1:]
    shown = _show(arguments)
    if shown is not None:
        print(shown, end="")
        return 0
    return _drive(arguments)


def _drive(arguments: Sequence[str]) -> int:
    from windtunnel.driver.base.errors import DriverError
    from windtunnel.driver.base.shutdown_signal import ShutdownSignal
    from windtunnel.driver.media_driver import settings_table
    from windtunnel.driver.media_driver.context import from_environment
    from windtunnel.driver.media_driver.media_driver import MediaDriver
    from windtunnel.driver.media_driver.settings import command_line

    # Heard from the first moment on: a driver still being made ends as soon as it stands.
    note = ShutdownSignal.on_signals()
    try:
        told = command_line.read_given(os.environ, arguments)
        context = from_environment(told.texts, shared=told.shared())
        if context.print_configuration:
            print(settings_table.configuration(context, told.origin_of), end="", flush=True)
        driver = MediaDriver(context, stopping=note)
    except (DriverError, OSError) as error:
        print(f"windtunnel-driver: {error}", file=sys.stderr)
        return 1
    with driver:
        print(f"driver ready pid={os.getpid()} dir={context.dir}", flush=True)
        while not driver.wait(LOOK_INTERVAL_S):
            pass
    if driver.failure is not None:
        print(f"windtunnel-driver: an agent failed: {driver.failure!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
