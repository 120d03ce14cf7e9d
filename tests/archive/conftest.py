"""Archives that tests share: one process for all that need nothing else."""

import pytest

from tests.archive.archives import KINDS, Archive
from tests.archive.conversation import Conversation


class Archives:
    """Every archive that was started, by its kind and what it is for."""

    def __init__(self, folder):
        self._folder, self._running = folder, {}

    def shared(self, kind, name="patient", settings=None, class_path=()):
        """The running archive of that name, started when it is asked for first."""
        if (kind, name) not in self._running:
            made = Archive(kind, self._folder / f"{kind}-{name}", settings, class_path)
            self._running[kind, name] = made
            made.start()
        return self._running[kind, name]

    def stop(self):
        for archive in self._running.values():
            archive.kill()


@pytest.fixture(scope="session")
def archives(tmp_path_factory):
    made = Archives(tmp_path_factory.mktemp("archives"))
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def archive(archives, kind):
    """An archive with Aeron's defaults, but for small files and no limits."""
    return archives.shared(kind)


@pytest.fixture
def talk(archive):
    """A control session with the shared archive."""
    made = Conversation(archive)
    yield made
    made.close()


@pytest.fixture
def own_archive(tmp_path, kind):
    """Makes archives that a test has for itself, with settings of its own."""
    made = []

    def make(settings=None, name="own"):
        made.append(Archive(kind, tmp_path / name, settings))
        return made[-1]

    yield make
    for each in made:
        each.kill()
