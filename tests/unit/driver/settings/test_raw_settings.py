"""The settings of a process: precedence and origin."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.settings.properties import name_of, variable_of
from windtunnel.driver.settings.raw_settings import RawSettings


@pytest.fixture
def given():
    return RawSettings({"AERON_ARCHIVE_ID": "4", "AERON_ARCHIVE_DIR": "/a", "HOME": "/e"})


def test_a_later_source_overrides(given, tmp_path):
    path = tmp_path / "archive.properties"
    path.write_text("# mine\n\naeron.archive.id = 5\naeron.archive.dir: /b\n! no\n")
    given.load_file(str(path))
    given.set_line("-D", "aeron.archive.dir=/c")
    given.set_line("-D", "aeron.dir=/d")
    assert given.texts["AERON_ARCHIVE_ID"] == "5"
    assert given.texts["AERON_ARCHIVE_DIR"] == "/c"
    assert given.origin_of("AERON_ARCHIVE_ID") == str(path)
    assert given.origin_of("AERON_ARCHIVE_DIR") == given.origin_of("AERON_DIR") == "-D"
    assert given.environment_variables() == {"HOME"}


def test_an_empty_value_unsets_a_setting(given):
    given.set_line("-D", "aeron.archive.id=")
    assert "AERON_ARCHIVE_ID" not in given.texts
    assert given.origin_of("AERON_ARCHIVE_ID") == "default"


@pytest.mark.parametrize("content", ["no equals sign", "=5", "\udcff"])
def test_an_invalid_property_is_refused(given, tmp_path, content):
    path = tmp_path / "archive.properties"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError, match=r"archive\.properties"):
        given.load_file(str(path))
    with pytest.raises(ConfigurationError, match="nowhere"):
        given.load_file(str(tmp_path / "nowhere"))


def test_variables_map_to_properties():
    assert variable_of("aeron.archive.mark.file.dir") == "AERON_ARCHIVE_MARK_FILE_DIR"
    assert name_of("AERON_ARCHIVE_MARK_FILE_DIR") == "aeron.archive.mark.file.dir"
