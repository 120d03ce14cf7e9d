"""Property files are read in the same way as by the C driver."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.settings.properties import FILE_LENGTH_MAX, read_file, read_line

TEXT = """\
# a comment
   ! another
aeron.dir = /dev/shm/one
aeron.mtu.length:8k\r
\taeron.CongestionControl.supplier\t=\tcubic
aeron.driver.resolver.bootstrap.neighbor=one:8050,\\
    # a comment in between
    two:8051
aeron.name.resolver.init.args=a=b|c=d

aeron.max.resend=
"""


def test_a_file_is_read_into_variables(tmp_path):
    path = tmp_path / "driver.properties"
    path.write_text(TEXT)
    expected = [
        ("AERON_DIR", "/dev/shm/one"),
        ("AERON_MTU_LENGTH", "8k"),
        ("AERON_CONGESTIONCONTROL_SUPPLIER", "cubic"),
        ("AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR", "one:8050,two:8051"),
        ("AERON_NAME_RESOLVER_INIT_ARGS", "a=b|c=d"),
        ("AERON_MAX_RESEND", ""),
    ]
    assert list(read_file(str(path))) == expected
    assert list(read_file(f"file://{path}")) == expected


@pytest.mark.parametrize("line", ["aeron.dir", "=value", " : value", "aeron dir"])
def test_an_invalid_line_is_refused_with_its_number(tmp_path, line):
    path = tmp_path / "driver.properties"
    path.write_text(f"aeron.dir=x\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"driver\.properties:2: expected name=value"):
        list(read_file(str(path)))


def test_a_file_that_ends_in_a_continued_line_is_refused(tmp_path):
    path = tmp_path / "driver.properties"
    path.write_text("aeron.dir=x\\")
    with pytest.raises(
        ConfigurationError, match=":1: expected another line after the final backslash"
    ):
        list(read_file(str(path)))


def test_invalid_files_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        list(read_file(str(tmp_path / "none")))
    with pytest.raises(ConfigurationError, match="not over HTTP"):
        list(read_file("http://somewhere/driver.properties"))
    with pytest.raises(ConfigurationError, match="Is a directory"):
        list(read_file(str(tmp_path)))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        list(read_file(str(tmp_path / "binary")))
    (tmp_path / "long").write_bytes(b"#" * (FILE_LENGTH_MAX + 1))
    with pytest.raises(ConfigurationError, match="at most"):
        list(read_file(str(tmp_path / "long")))
    # A device has no length. Its content is never read as a whole.
    with pytest.raises(ConfigurationError, match="at most"):
        list(read_file("/dev/zero"))


def test_the_first_separator_ends_the_name():
    assert read_line("-D", "aeron.dir=/a:b") == ("AERON_DIR", "/a:b")
    assert read_line("-D", "aeron.dir:/a=b") == ("AERON_DIR", "/a=b")


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_read_or_rejected(tmp_path, content):
    path = tmp_path / "driver.properties"
    path.write_bytes(content)
    try:
        pairs = list(read_file(str(path)))
    except ConfigurationError:
        return
    assert all(variable for variable, _ in pairs)
