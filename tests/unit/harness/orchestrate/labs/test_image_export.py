"""Export of an image for an engine in another kernel, and refusals before that engine starts."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import engine, image_export

SIZE_BYTES = 10 << 20


@pytest.fixture
def with_image(monkeypatch):
    """An engine with an image of a few bytes, whose reported size is 10 MiB."""
    image = SimpleNamespace(attrs={"Size": SIZE_BYTES}, save=lambda named: iter([b"ab", b"c"]))
    client = SimpleNamespace(images=SimpleNamespace(get=lambda name: image))

    @contextmanager
    def connection():
        yield client

    monkeypatch.setattr(engine, "connection", connection)
    monkeypatch.setattr(engine, "ensure_image", lambda client, name: None)


def test_the_image_becomes_a_file(with_image, tmp_path):
    assert image_export.save_image(tmp_path).read_bytes() == b"abc"


def test_too_little_space_is_reported_with_both_figures(with_image, tmp_path, monkeypatch):
    monkeypatch.setattr(
        image_export.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 20)
    )
    with pytest.raises(LabError, match=r"need 30 MiB in .* which has only 1 MiB free: set TMPDIR"):
        image_export.save_image(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_an_engine_no_image_is_exported(tmp_path):
    with pytest.raises(LabError, match="no container engine listens"):
        image_export.save_image(tmp_path)
