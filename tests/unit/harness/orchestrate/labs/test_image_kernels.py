"""A container compiles the kernels of containers if they are missing, and is then removed."""

import shutil
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from windtunnel.driver.kernels.sources import FILE_NAME
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import engine, image_kernels
from windtunnel.harness.orchestrate.precompile import precompile

VOLUME = "windtunnel-kernels"


class Engine:
    """One volume, and containers with a given output and exit code."""

    def __init__(self, folder):
        self.volumes = SimpleNamespace(create=self._volume)
        self.containers = SimpleNamespace(create=self._container)
        self.attributes = {"Mountpoint": str(folder), "Options": None}
        self.chunks, self.code = [b"1 s  one\n2 s", b"  two\n", b"end"], 0
        self.created, self.removed = [], 0

    def _volume(self, name, labels):
        assert name == VOLUME
        return SimpleNamespace(attrs=self.attributes)

    def _container(self, image, command, **options):
        self.created.append(options)
        return SimpleNamespace(
            start=lambda: None,
            logs=lambda stream, follow: iter(self.chunks),
            wait=lambda: {"StatusCode": self.code},
            remove=self._remove,
        )

    def _remove(self, force):
        self.removed += 1

    def sources(self):
        """Return the volumes or folders that the created containers had for their kernels."""
        place = image_kernels.KERNELS_IN_CONTAINER
        return [
            source
            for each in self.created
            for source, mount in each["volumes"].items()
            if mount["bind"] == place
        ]


@pytest.fixture(scope="module")
def summaries(tmp_path_factory):
    """Summaries of all sources, whose computation takes seconds."""
    folder = tmp_path_factory.mktemp("summaries")
    precompile.mark_name(folder)
    return folder / FILE_NAME


@pytest.fixture
def volume(tmp_path, monkeypatch, summaries):
    for folder in (tmp_path, tmp_path / "own" / image_kernels.FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(summaries, folder)
    created = Engine(tmp_path)

    @contextmanager
    def connection():
        yield created

    monkeypatch.setattr(engine, "connection", connection)
    monkeypatch.setattr(engine, "ensure_image", lambda client, name: None)
    created.copied_to = []
    monkeypatch.setattr(image_kernels, "copy_to", created.copied_to.append)
    return created


def test_the_volume_is_that_of_the_compose_file():
    assert image_kernels.volume_name() == VOLUME


def test_an_empty_volume_is_filled_and_reported_line_by_line(volume, tmp_path):
    reported = []
    image_kernels.compile_in_volume(reported.append)
    assert volume.sources() == [VOLUME]
    assert volume.copied_to == [tmp_path]
    assert reported == ["1 s  one", "2 s  two", "end"]
    assert volume.removed == 1
    assert not engine.owner_is_alive(volume.created[0]["labels"][engine.OWNER_LABEL] + "x")
    assert engine.owner_is_alive(volume.created[0]["labels"][engine.OWNER_LABEL])


def test_a_full_volume_is_left_alone(volume, tmp_path):
    (tmp_path / precompile.mark_name(tmp_path)).touch()
    image_kernels.compile_in_volume(pytest.fail)
    assert image_kernels.compile_in_folder(pytest.fail) == tmp_path
    assert not volume.created


def test_a_folder_that_backs_a_volume_is_examined_itself(volume, tmp_path):
    (tmp_path / precompile.mark_name(tmp_path)).touch()
    volume.attributes = {"Mountpoint": "/nowhere", "Options": {"device": str(tmp_path)}}
    image_kernels.compile_in_volume(pytest.fail)
    assert not volume.created


def test_a_container_without_output_reports_nothing(volume):
    volume.chunks = []
    image_kernels.compile_in_volume(pytest.fail)
    assert len(volume.created) == 1


def test_a_user_without_access_to_the_volume_gets_a_folder(volume, tmp_path, monkeypatch):
    monkeypatch.setenv("WINDTUNNEL_KERNEL_CACHE", str(tmp_path / "own" / "kernels"))
    volume.attributes["Mountpoint"] = str(tmp_path / "not-there")
    folder = image_kernels.compile_in_folder(lambda line: None)
    assert folder == tmp_path / "own" / image_kernels.FOLDER
    assert volume.sources() == [str(folder)]
    image_kernels.compile_in_volume(lambda line: None)
    assert volume.sources() == [str(folder), VOLUME]


@pytest.mark.full
def test_a_container_that_fails_is_reported_with_its_last_line_and_removed(volume):
    volume.code = 1
    with pytest.raises(LabError, match=r"ended with exit code 1: end$"):
        image_kernels.compile_in_volume(lambda line: None)
    assert volume.removed == 1


def test_without_an_engine_nothing_is_compiled():
    for work in (image_kernels.compile_in_volume, image_kernels.compile_in_folder):
        with pytest.raises(LabError, match="no container engine listens"):
            work()
