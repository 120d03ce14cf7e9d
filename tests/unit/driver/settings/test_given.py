"""What a process was told: the later wins, and who said it."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.settings.given import GivenSettings
from windtunnel.driver.settings.properties import name_of, variable_of


@pytest.fixture
def given():
    return GivenSettings({"AERON_ARCHIVE_ID": "4", "AERON_ARCHIVE_DIR": "/a", "HOME": "/e"})


def test_the_later_wins(given, tmp_path):
    path = tmp_path / "archive.properties"
    path.write_text("# mine\n\naeron.archive.id = 5\naeron.archive.dir: /b\n! no\n")
    given.give_file(str(path))
    given.give_line("-D", "aeron.archive.dir=/c")
    given.give_line("-D", "aeron.dir=/d")
    assert given.texts["AERON_ARCHIVE_ID"] == "5"
    assert given.texts["AERON_ARCHIVE_DIR"] == "/c"
    assert given.origin_of("AERON_ARCHIVE_ID") == str(path)
    assert given.origin_of("AERON_ARCHIVE_DIR") == given.origin_of("AERON_DIR") == "-D"
    assert given.shared() == {"HOME"}


def test_nothing_takes_a_setting_back(given):
    given.give_line("-D", "aeron.archive.id=")
    assert "AERON_ARCHIVE_ID" not in given.texts
    assert given.origin_of("AERON_ARCHIVE_ID") == "default"


@pytest.mark.parametrize("content", ["no equals sign", "=5", "\udcff"])
def test_what_is_no_property_is_refused(given, tmp_path, content):
    path = tmp_path / "archive.properties"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError, match=r"archive\.properties"):
        given.give_file(str(path))
    with pytest.raises(ConfigurationError, match="nowhere"):
        given.give_file(str(tmp_path / "nowhere"))


def test_a_variable_stands_for_one_property():
    assert variable_of("aeron.archive.mark.file.dir") == "AERON_ARCHIVE_MARK_FILE_DIR"
    assert name_of("AERON_ARCHIVE_MARK_FILE_DIR") == "aeron.archive.mark.file.dir"
