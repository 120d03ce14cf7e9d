"""docs/security.md names the limits of the code, and tests that exist."""

import re
from pathlib import Path

from windtunnel.driver.archive.control import connection_limits, control_sessions
from windtunnel.driver.archive.observation import archive_errors
from windtunnel.driver.archive.recording import subscription_requests
from windtunnel.driver.media_driver.conductor import waiting_commands
from windtunnel.driver.media_driver.name_resolution import name_cache, suppliers
from windtunnel.harness.artifact import compressed_file, records
from windtunnel.harness.fuzz.budgets import LIMITS
from windtunnel.reports.analysis.reading import totals, xz_reader
from windtunnel.reports.analysis.streams import repair, stream_limit

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/security.md").read_text(encoding="utf-8").split())


def test_its_limits_are_those_of_the_code() -> None:
    limits = connection_limits
    for sentence in (
        f"{limits.ESTABLISHING_MAX} sessions per request publication are being established at a "
        f"time, {limits.WAITING_MAX} wait",
        f"together have {limits.ESTABLISHING_OF_HOST_MAX} and {limits.WAITING_OF_HOST_MAX:,}.",
        f"or is longer than {control_sessions.REQUEST_LENGTH_MAX >> 10} KiB, is ignored",
        f"adds at most {subscription_requests.IN_FLIGHT_MAX} subscriptions of one client at a time",
        f"at most {archive_errors.WARNINGS_MAX:,} different warnings",
        f"have {waiting_commands.WAITING_PER_CLIENT_MAX} waiting commands",
        f"and {waiting_commands.LOOKUPS_PER_CLIENT_MAX} lookups in progress",
        f"at most {stream_limit.STREAMS_MAX:,} are analysed",
        f"at most {stream_limit.DESTINATIONS_MAX} of one stream, and {stream_limit.STREAMS_MAX:,} "
        "in total",
        f"At most {repair.GAPS_MAX:,} gaps are tracked",
        f"at most {totals.TOTALS_MAX:,} combinations of stream",
        f"at most {xz_reader.MEMORY_BYTES_MAX >> 20} MiB, whatever a compressed capture claims",
        f"records of more than {records.RECORDS_BYTES_MAX >> 30} GiB, and compressed or sparse "
        f"captures of more than {compressed_file.PLAIN_BYTES_MAX >> 30} GiB",
        f"knows at most {name_cache.ENTRIES_MAX:,} names",
    ):
        assert sentence in PAGE
    assert suppliers.COMMAND_WORKERS_MAX == 4 * waiting_commands.LOOKUPS_PER_CLIENT_MAX


def test_its_budgets_are_those_of_the_code() -> None:
    _, _, section = PAGE.partition("## What an attack may cost others")
    section, _, _ = section.partition("## ")
    budgets = re.findall(r"\| [a-z][^|]+ \| (\d+)", section)
    assert [float(each) for each in budgets] == list(LIMITS.values())


def test_the_tests_that_it_names_exist() -> None:
    named = re.findall(r"`(tests/[\w./]+)`", PAGE)
    assert len(named) > 10
    assert [each for each in named if not (ROOT / each).exists()] == []
