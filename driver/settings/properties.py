"""Property files and -D options, read as the C driver reads them into environment variables.

    # comment          ! comment
    aeron.dir = /dev/shm/one                name, then = or :, then the value
    aeron.mtu.length: 8k
    aeron.driver.resolver.bootstrap.neighbor = one:8050,\\
        two:8050                            a backslash at the end of a line carries on

A name becomes a variable by upper-casing it and turning dots to underscores. An empty value takes
the setting back to its default. Source: the C driver of Aeron 1.53.
"""

from collections.abc import Iterator
from pathlib import Path

from windtunnel.driver.base.errors import ConfigurationError

FILE_PREFIX = "file://"
URL_PREFIXES = ("http://", "https://")
FILE_LENGTH_MAX = 1 << 20
"""Ours: a file that is longer is no property file."""


def variable_of(name: str) -> str:
    """The environment variable that a property's name stands for."""
    return name.upper().replace(".", "_")


def name_of(variable: str) -> str:
    """The property that an environment variable stands for, where its name has no capitals."""
    return variable.lower().replace("_", ".")


def read_line(where: str, line: str) -> tuple[str, str]:
    """Variable and value of one `name=value`; `where` is told when it is not one."""
    ends = [at for at in (line.find("="), line.find(":")) if at >= 0]
    name = line[: min(ends)].strip() if ends else ""
    if not name:
        raise ConfigurationError(f"{where}: expected name=value, found {line.strip()!r}")
    return variable_of(name), line[min(ends) + 1 :].strip()


def read_file(path_or_url: str) -> Iterator[tuple[str, str]]:
    """Variable and value of each line that says something."""
    if path_or_url.lower().startswith(URL_PREFIXES):
        raise ConfigurationError(f"{path_or_url}: properties are read from files only, not by HTTP")
    path = Path(path_or_url.removeprefix(FILE_PREFIX))
    try:
        if path.stat().st_size > FILE_LENGTH_MAX:
            raise ConfigurationError(f"{path}: a property file has at most {FILE_LENGTH_MAX} bytes")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not a text in UTF-8") from error
    whole, first = "", 0
    for number, line in enumerate(lines, start=1):
        text = line.strip(" \t")
        if not text or text[0] in "#!":
            continue
        first = first or number
        whole += text
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        yield read_line(f"{path}:{first}", whole)
        whole, first = "", 0
    if whole:
        raise ConfigurationError(f"{path}:{first}: the file ends where a line was to carry on")
