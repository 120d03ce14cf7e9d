"""Fixtures with archives that tests share, with one process for all tests without special settings.

They run only while tests of this folder run, which are therefore kept together: an idle archive
still uses a twentieth of a core.
"""

from pathlib import Path

import pytest

from tests.archive import credential_authenticator
from tests.archive.archives import JAR, KINDS, Archive
from tests.archive.conversation import ControlSession

FILES = frozenset(Path(__file__).parent.glob("test_*.py"))
"""For 12,000 tests, a look-up costs much less than asking whether a path lies below a folder."""
SHARED = pytest.StashKey["Archives"]()


def is_in_this_folder(item):
    return item is not None and item.path in FILES


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Move all tests of this folder to the position of its first test, in the same order."""
    own = [each for each in items if is_in_this_folder(each)]
    if own:
        first = items.index(own[0])
        items[:] = [
            *items[:first],
            *own,
            *(each for each in items[first:] if not is_in_this_folder(each)),
        ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Stop the shared archives after the last test of this folder."""
    try:
        return (yield)
    finally:
        if not is_in_this_folder(nextitem) and SHARED in item.config.stash:
            item.config.stash[SHARED].stop()


class Archives:
    """All archives that were started, by kind and purpose."""

    def __init__(self, folder):
        self._folder, self._running, self._count = folder, {}, 0

    def shared(self, kind, name="default", settings=None, class_path=()):
        """Return the running archive with this name, which is started on first use."""
        running = self._running.get((kind, name))
        if running is not None and not running.is_alive:
            # A test may have killed the archive.
            running.kill()
            del self._running[kind, name]
        if (kind, name) not in self._running:
            self._count += 1
            folder = self._folder / f"{kind}-{name}-{self._count}"
            made = Archive(kind, folder, settings, class_path)
            self._running[kind, name] = made
            made.start()
        return self._running[kind, name]

    def stop(self):
        while self._running:
            self._running.popitem()[1].kill()


@pytest.fixture(scope="session")
def archives(tmp_path_factory, pytestconfig):
    made = Archives(tmp_path_factory.mktemp("archives"))
    pytestconfig.stash[SHARED] = made
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def archive(archives, kind):
    """An archive with Aeron's defaults, except for small files, long timeouts and no limits."""
    return archives.shared(kind)


@pytest.fixture
def session(archive):
    """A control session with the shared archive."""
    made = ControlSession(archive)
    yield made
    made.close()


@pytest.fixture
def own_archive(tmp_path, kind):
    """Creates archives for one test, with its own settings."""
    made = []

    def make(settings=None, name="own"):
        made.append(Archive(kind, tmp_path / name, settings))
        return made[-1]

    yield make
    for each in made:
        each.kill()


@pytest.fixture
def short_timeout_archive(archives, kind):
    """An archive with a timeout of five seconds and ten times as many liveness checks."""
    settings = {
        "aeron.archive.connect.timeout": "5s",
        "aeron.archive.session.liveness.check.interval": "100ms",
        "aeron.archive.message.timeout": "5s",
    }
    return archives.shared(kind, "short-timeouts", settings)


@pytest.fixture(scope="session")
def java_authenticator(tmp_path_factory):
    """The class folder of CredentialAuthenticator.java, or None if there is no Java compiler."""
    return credential_authenticator.compiled(JAR, tmp_path_factory.mktemp("classes"))


@pytest.fixture
def authenticated_archive(archives, kind, request):
    """An archive with authentication and a timeout of five seconds."""
    authenticator = authorisation = "tests.archive.credential_authenticator:CredentialAuthenticator"
    class_path = ()
    if kind == "java":
        classes = request.getfixturevalue("java_authenticator")
        if classes is None:
            pytest.skip("there is no javac on the PATH to compile an authenticator with")
        authenticator, authorisation, class_path = (
            "CredentialAuthenticator",
            "CredentialAuthenticator$Rules",
            (classes,),
        )
    settings = {
        "aeron.archive.connect.timeout": "5s",
        "aeron.archive.authenticator.supplier": authenticator,
        "aeron.archive.authorisation.service.supplier": authorisation,
    }
    return archives.shared(kind, "authenticated", settings, class_path)


@pytest.fixture
def checksum_archive(archives, kind):
    """An archive that writes checksums and verifies them before replay."""
    settings = {
        "aeron.archive.record.checksum": "CRC-32",
        "aeron.archive.replay.checksum": "CRC-32",
    }
    return archives.shared(kind, "checksums", settings)


@pytest.fixture
def source(archives, kind):
    """A second archive with its own driver, as the source of replications."""
    return archives.shared(kind, "source")


@pytest.fixture
def source_session(source):
    """A control session with the second archive."""
    made = ControlSession(source)
    yield made
    made.close()
