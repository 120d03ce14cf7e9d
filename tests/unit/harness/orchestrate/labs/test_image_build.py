"""Building images of applications: the context for the engine, the log, and refused folders."""

from types import SimpleNamespace

import pytest
import urllib3

from windtunnel.harness.orchestrate.lab import NotBuilt
from windtunnel.harness.orchestrate.labs import image_build
from windtunnel.harness.orchestrate.labs.image_build import build_image


class Engine:
    """An engine whose output for each build is these chunks."""

    def __init__(self, *chunks):
        self.chunks, self.built = chunks, []
        self.api = SimpleNamespace(build=self._build)

    def _build(self, *, path, tag, **options):
        self.built.append((path, tag))
        for each in self.chunks:
            if isinstance(each, Exception):
                raise each
            yield each


@pytest.fixture
def root(tmp_path):
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "Dockerfile").write_text("FROM windtunnel:local\n")
    return tmp_path


@pytest.fixture
def log(tmp_path):
    return tmp_path / "hosts" / "b" / "build.log"


def test_a_folder_has_an_image_whose_build_is_logged(root, log):
    engine = Engine({"stream": "Step 1/1\n"}, {"aux": {}}, {"stream": "Successfully built 1\n"})
    name = build_image(engine, root, "./feed", log)
    assert name.startswith("windtunnel-application:")
    assert [tag for _, tag in engine.built] == [name]
    assert log.read_text() == "Step 1/1\nSuccessfully built 1\n"
    assert build_image(Engine(), root, ".", log) != name


@pytest.mark.parametrize(
    "last",
    [
        {"error": "The command 'false' returned\n 1"},
        image_build.DockerException("The command 'false' returned 1"),
    ],
)
def test_a_build_that_fails_is_named_with_its_last_line(root, log, last):
    engine = Engine({"stream": "Step 2/2 : RUN false\n"}, {"stream": "\n"}, last)
    with pytest.raises(NotBuilt, match=r"The command 'false' returned 1; the end .* RUN false"):
        build_image(engine, root, "feed", log)
    assert "RUN false" in log.read_text()


def test_the_log_has_a_limit(root, log, monkeypatch):
    monkeypatch.setattr(image_build, "LOG_BYTES_MAX", 10)
    build_image(Engine(*[{"stream": "abcd"}] * 5), root, "feed", log)
    assert log.read_text() == "abcdabcdab"


def test_an_endless_build_is_ended(root, log, monkeypatch):
    monkeypatch.setattr(image_build, "BUILD_TIMEOUT_S", -1.0)
    with pytest.raises(NotBuilt, match="takes longer than"):
        build_image(Engine({"stream": "a"}, {"stream": "b"}), root, "feed", log)


def test_a_folder_that_is_too_large_is_refused_unless_files_are_left_out(root, log, monkeypatch):
    monkeypatch.setattr(image_build, "CONTEXT_BYTES_MAX", 1000)
    (root / "feed" / "data.bin").write_bytes(bytes(2000))
    engine = Engine()
    with pytest.raises(NotBuilt, match=r"exceed 1000B: leave some out in a \.dockerignore file"):
        build_image(engine, root, "feed", log)
    assert engine.built == []
    (root / "feed" / ".dockerignore").write_text("# large\n*.bin\n")
    build_image(engine, root, "feed", log)
    assert len(engine.built) == 1


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"*.md\n[z-a]\n", "a pattern cannot be read: bad character range z-a"),
        (None, "expected a regular file, found a directory"),
    ],
)
def test_an_ignore_file_that_cannot_be_used_is_named(root, log, patterns, problem):
    ignored = root / "feed" / ".dockerignore"
    if patterns is None:
        ignored.mkdir()
    else:
        ignored.write_bytes(patterns)
    engine = Engine()
    with pytest.raises(NotBuilt, match=rf"\.dockerignore: {problem}"):
        build_image(engine, root, "feed", log)
    assert engine.built == []


@pytest.mark.parametrize(
    "last",
    [
        urllib3.exceptions.ReadTimeoutError(None, "/build", "Read timed out."),
        image_build.StreamParseError(ValueError("Read timed out.")),
    ],
)
def test_a_build_whose_output_breaks_off_is_named_with_its_last_line(root, log, last):
    engine = Engine({"stream": "Step 2/2 : RUN make\n"}, last)
    with pytest.raises(NotBuilt, match=r"Read timed out\.; the end .* RUN make"):
        build_image(engine, root, "feed", log)


def test_only_a_folder_below_the_scenario_is_built(root, log):
    (root / "link").symlink_to("/etc")
    for folder, error in (
        ("link", "expected a directory, found a symbolic link"),
        ("absent", "No such file or directory"),
        ("feed/Dockerfile", "expected a directory, found a regular file|Not a directory"),
        ("../feed", "expected a path without '..'"),
    ):
        engine = Engine()
        with pytest.raises(NotBuilt, match=error):
            build_image(engine, root, folder, log)
        assert engine.built == []
