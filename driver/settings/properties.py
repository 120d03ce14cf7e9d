"""Property files and -D options, translated into environment variables as in the C driver.

    # comment          ! comment
    aeron.dir = /dev/shm/one                name, then = or :, then the value
    aeron.mtu.length: 8k
    aeron.driver.resolver.bootstrap.neighbor = one:8050,\\
        two:8050                            a backslash at the end continues the line

The variable is the property name in upper case, with underscores instead of dots. An empty value
resets the setting to its default. Source: the C driver of Aeron 1.53.
"""

from collections.abc import Iterator
from pathlib import Path

from windtunnel.driver.base.errors import ConfigurationError

FILE_PREFIX = "file://"
URL_PREFIXES = ("http://", "https://")
FILE_LENGTH_MAX = 1 << 20
"""The maximum length of a property file in bytes, chosen by this project."""


def variable_of(name: str) -> str:
    """Return the name of the environment variable that corresponds to a property."""
    return name.upper().replace(".", "_")


def name_of(variable: str) -> str:
    """Return the property name for an environment variable, in lower case."""
    return variable.lower().replace("_", ".")


def read_line(where: str, line: str) -> tuple[str, str]:
    """Parse a line `name=value` or `name: value` into (variable, value). Raises ConfigurationError,
    with a message that begins with `where`, if there is no name.
    """
    ends = [at for at in (line.find("="), line.find(":")) if at >= 0]
    name = line[: min(ends)].strip() if ends else ""
    if not name:
        raise ConfigurationError(f"{where}: expected name=value, found {line.strip()!r}")
    return variable_of(name), line[min(ends) + 1 :].strip()


def read_file(path_or_url: str) -> Iterator[tuple[str, str]]:
    """Yield (variable, value) for each property in a file. Raises ConfigurationError if the file
    cannot be read or is invalid.
    """
    if path_or_url.lower().startswith(URL_PREFIXES):
        raise ConfigurationError(
            f"{path_or_url}: properties can only be read from files, not over HTTP"
        )
    path = Path(path_or_url.removeprefix(FILE_PREFIX))
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LENGTH_MAX + 1)
        if len(content) > FILE_LENGTH_MAX:
            raise ConfigurationError(f"{path}: expected a file of at most {FILE_LENGTH_MAX} bytes")
        lines = content.decode("utf-8").splitlines()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: expected a UTF-8 text file") from error
    joined, first = "", 0
    for number, line in enumerate(lines, start=1):
        text = line.strip(" \t")
        if not text or text[0] in "#!":
            continue
        first = first or number
        joined += text
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        yield read_line(f"{path}:{first}", joined)
        joined, first = "", 0
    if joined:
        raise ConfigurationError(f"{path}:{first}: expected another line after the final backslash")
