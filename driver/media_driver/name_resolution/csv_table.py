"""A table of names, each with two hosts. A counter selects one of the two hosts, to test
re-resolution.

    settings   name,initial host,re-resolution host|name,...
    counter    one per row, type 2001, with a value from the test:
               -1 for no address, 0 for the initial host, 1 for the re-resolution host,
               any other value for the name itself

If two rows have the same name, the later row is used. Source: aeron_csv_table_name_resolver, Aeron
1.53.
"""

import struct
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_manager import CountersManager

NAME_ENTRY = 2001
"""Type id of the counters that select the hosts. Each row of the table has one."""

DISABLED = -1
INITIAL_HOST = 0
RE_RESOLUTION_HOST = 1

ROWS_MAX = 1024
SETTING = "AERON_NAME_RESOLVER_INIT_ARGS"
_KEY_NAME_LENGTH_MAX = counters.KEY_LENGTH_MAX - 4


class NameEntry(NamedTuple):
    """A row of the CSV table: a name and its two hosts."""

    name: str
    initial_host: str
    re_resolution_host: str

    @property
    def key(self) -> bytes:
        """The key of the row's counter: the length of the name (i32), followed by the name."""
        name = self.name.encode("utf-8", "surrogateescape")
        return struct.pack("<i", len(name)) + name[:_KEY_NAME_LENGTH_MAX]

    @property
    def label(self) -> str:
        return (
            f"NameEntry{{name='{self.name}', initialResolutionHost='{self.initial_host}', "
            f"reResolutionHost='{self.re_resolution_host}'}}"
        )


def parse_table(text: str) -> tuple[NameEntry, ...]:
    """Parse the rows of a table. Raises ConfigurationError for a malformed row."""
    rows = []
    for row in text.split("|"):
        if not row:
            continue
        columns = row.split(",")
        if len(columns) != 3 or not all(columns):
            raise ConfigurationError(
                f"{SETTING}={text}: expected name,initial host,re-resolution host in each row, "
                f"found '{row}'"
            )
        rows.append(NameEntry(*columns))
    if not rows or len(rows) > ROWS_MAX:
        raise ConfigurationError(
            f"{SETTING}={text[:100]}: expected 1 to {ROWS_MAX} rows, found {len(rows)}"
        )
    return tuple(rows)


class CsvTable:
    """A NameSource that looks up names in the CSV table."""

    is_polled = False

    def __init__(
        self, rows: tuple[NameEntry, ...], manager: CountersManager, values: np.ndarray
    ) -> None:
        self._values = values
        self._rows = {
            row.name: (row, manager.allocate(NAME_ENTRY, row.key, row.label)) for row in rows
        }

    def substitute(self, host: str, key: str) -> str:
        found = self._rows.get(host)
        if found is None:
            return host
        row, counter_id = found
        # Read with acquire, because another process writes the counter.
        operation = int(counters.get_acquire(self._values, counter_id))
        if operation == DISABLED:
            raise UnknownHostError(
                f"{key}={host}: unknown host: Unable to resolve host=({host}): (forced)"
            )
        if operation == INITIAL_HOST:
            return row.initial_host
        return row.re_resolution_host if operation == RE_RESOLUTION_HOST else host

    def do_work(self, now_ns: int) -> int:
        return 0

    def close(self) -> None:
        pass
