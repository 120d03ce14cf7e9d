"""A table of names whose hosts are selected by counters."""

import struct

import pytest

from tests.unit.driver.media_driver.name_resolution.rig import FIRST_FREE, CounterFile, make_clock
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.media_driver.name_resolution import csv_table
from windtunnel.driver.media_driver.name_resolution.csv_table import (
    CsvTable,
    NameEntry,
    parse_table,
)

TEXT = "one,127.0.0.1,127.0.0.2|two,localhost,bad.invalid|"


@pytest.fixture
def file():
    return CounterFile(make_clock())


def test_the_bar_after_the_last_row_is_optional():
    rows = (
        NameEntry("one", "127.0.0.1", "127.0.0.2"),
        NameEntry("two", "localhost", "bad.invalid"),
    )
    assert parse_table(TEXT) == parse_table(TEXT[:-1]) == rows


@pytest.mark.parametrize("text", ["", "|", "a,b", "a,b,c,d", "a,,c", "a,b,c|x"])
def test_an_invalid_row_is_rejected(text):
    with pytest.raises(ConfigurationError, match="AERON_NAME_RESOLVER_INIT_ARGS"):
        parse_table(text)


def test_the_number_of_rows_has_a_limit(monkeypatch):
    monkeypatch.setattr(csv_table, "ROWS_MAX", 2)
    assert len(parse_table("a,b,c|d,e,f")) == 2
    with pytest.raises(ConfigurationError, match="found 3"):
        parse_table("a,b,c|d,e,f|g,h,i")


def test_each_row_has_a_counter_labelled_with_its_name(file):
    CsvTable(parse_table(TEXT), file.manager, file.values)
    one, two = file.by_type(2001)
    assert one.counter_id == FIRST_FREE
    assert one.key[:7] == struct.pack("<i", 3) + b"one"
    assert one.label == (
        "NameEntry{name='one', initialResolutionHost='127.0.0.1', reResolutionHost='127.0.0.2'}"
    )
    assert two.key[4:7] == b"two"


@pytest.mark.parametrize(
    ("operation", "found"), [(0, "127.0.0.1"), (1, "127.0.0.2"), (2, "one"), (-2, "one")]
)
def test_the_counter_selects_the_host(file, operation, found):
    table = CsvTable(parse_table(TEXT), file.manager, file.values)
    file.set(FIRST_FREE, operation)
    assert table.substitute("one", "endpoint") == found
    assert table.substitute("two", "endpoint") == "localhost"


def test_a_disabled_name_is_reported_as_unknown(file):
    table = CsvTable(parse_table(TEXT), file.manager, file.values)
    file.set(FIRST_FREE, -1)
    with pytest.raises(UnknownHostError, match=r"^endpoint=one: .*Unable to resolve host=\(one\)"):
        table.substitute("one", "endpoint")


def test_a_name_in_no_row_is_not_changed(file):
    table = CsvTable(parse_table(TEXT), file.manager, file.values)
    assert table.substitute("ONE", "endpoint") == "ONE"


def test_the_later_of_two_rows_with_one_name_is_used(file):
    table = CsvTable(parse_table("a,first,x|a,second,y"), file.manager, file.values)
    assert table.substitute("a", "endpoint") == "second"
    assert len(file.by_type(2001)) == 2


def test_a_name_longer_than_a_key_is_truncated_only_in_the_key(file):
    table = CsvTable(parse_table(f"{'n' * 200},h,r"), file.manager, file.values)
    assert file.by_type(2001)[0].key == struct.pack("<i", 200) + b"n" * 108
    assert table.substitute("n" * 200, "endpoint") == "h"
