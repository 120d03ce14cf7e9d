"""What a process was told: environment, property files and -D options, the later winning.

    # comment                             ! comment
    aeron.archive.dir = /data/archive     name, then = or :, then the value

An empty value takes a setting back to its default. It is read as the driver's process reads it, but
that a line has no continuation.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from driver.archive.settings.setting import variable_of
from driver.base.errors import ConfigurationError

FILE_LENGTH_MAX = 1 << 20
"""Ours: a file that is longer is no property file."""


def read_given(
    environment: Mapping[str, str], property_files: Iterable[str], options: Iterable[str]
) -> dict[str, str]:
    """Texts by variable. Raises ConfigurationError."""
    texts = dict(environment)
    for path in property_files:
        for line in _lines(Path(path)):
            _give(texts, *_parsed(path, line))
    for option in options:
        _give(texts, *_parsed("-D", option))
    return texts


def _give(texts: dict[str, str], variable: str, text: str) -> None:
    if text:
        texts[variable] = text
    else:
        texts.pop(variable, None)


def _parsed(where: str, line: str) -> tuple[str, str]:
    ends = [at for at in (line.find("="), line.find(":")) if at >= 0]
    name = line[: min(ends)].strip() if ends else ""
    if not name:
        raise ConfigurationError(f"{where}: expected name=value, found {line.strip()!r}")
    return variable_of(name), line[min(ends) + 1 :].strip()


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > FILE_LENGTH_MAX:
            raise ConfigurationError(f"{path}: a property file has at most {FILE_LENGTH_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not a text in UTF-8") from error
    return [line for line in map(str.strip, text.splitlines()) if line and line[0] not in "#!"]
