"""The process `windtunnel-driver`: settings in, a media driver until a signal comes.

It stands where `aeronmd` stands and reads the same settings. Exit codes: 0 after an orderly stop,
1 when it could not start or an agent failed.
"""

import os
import signal
import sys
from pathlib import Path

USAGE = """\
usage: windtunnel-driver [-h] [-v] [--dir DIRECTORY] [-Dname=value ...] [PROPERTIES_FILE ...]

An Aeron media driver. Settings come from the environment (AERON_DIR, AERON_THREADING_MODE, ...),
from property files (aeron.dir=...) and from -D options, the later winning. It stops in good order
on SIGINT and SIGTERM.

  -h, --help     show this text
  -v, --version  show the version
  --dir DIR      where the driver's files live (AERON_DIR)
"""


def _variable(name: str) -> str:
    return name.strip().upper().replace(".", "_")


def read_properties(path: Path) -> dict[str, str]:
    """The settings of a property file, by the name of their environment variable."""
    settings = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        name, mark, value = text.partition("=")
        if not mark:
            raise ValueError(f"{path}:{number}: expected name=value, found {text!r}")
        settings[_variable(name)] = value.strip()
    return settings


def read_arguments(arguments: list[str]) -> dict[str, str]:
    """The settings that the command line gives, by the name of their environment variable."""
    settings: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument == "--dir":
            settings["AERON_DIR"] = next(rest, "")
        elif argument.startswith("-D"):
            name, mark, value = argument[2:].partition("=")
            if not mark:
                raise ValueError(f"expected -Dname=value, found {argument!r}")
            settings[_variable(name)] = value
        elif argument.startswith("-"):
            raise ValueError(f"unknown option {argument!r}")
        else:
            settings |= read_properties(Path(argument))
    return settings


def main() -> int:
    """Run the driver until it is told to stop."""
    arguments = sys.argv[1:]
    if "-h" in arguments or "--help" in arguments:
        print(USAGE, end="")
        return 0
    from driver.media_driver.system_counters import VERSION_TEXT

    if "-v" in arguments or "--version" in arguments:
        print(f"windtunnel-driver, compatible with Aeron {VERSION_TEXT}")
        return 0
    from driver.base.errors import DriverError
    from driver.media_driver.context import from_environment
    from driver.media_driver.media_driver import MediaDriver

    try:
        context = from_environment(os.environ | read_arguments(arguments))
        driver = MediaDriver(context)
    except (DriverError, ValueError, OSError) as error:
        print(f"windtunnel-driver: {error}", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: driver.stop())
    with driver:
        print(f"driver ready pid={os.getpid()} dir={context.dir}", flush=True)
        while not driver.wait(3600):
            pass
    if driver.failure is not None:
        print(f"windtunnel-driver: an agent failed: {driver.failure!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
