"""Names of peers become subjects; a peer that this machine lacks has a reason and is no error."""

import sys
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.subjects.peers import PeerError
from windtunnel.harness.orchestrate.subjects.subject import OURS, Pair, Subject


@pytest.fixture
def jar(tmp_path, monkeypatch):
    created = tmp_path / "aeron-all.jar"
    created.write_bytes(b"")
    monkeypatch.setenv(peers.JAR_VARIABLE, str(created))
    return created


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_name_of_our_driver(tmp_path):
    assert peers.find("ours", "netns", tmp_path) is OURS


@pytest.mark.parametrize(
    "name",
    ["", "Ours", "aeron", "aeronmd", "aeronmd:", "java:/x.jar", "image:", "image:-x", "image:a b"],
)
def test_an_unknown_name_is_refused(tmp_path, name):
    with pytest.raises(PeerError, match="expected"):
        peers.find(name, "netns", tmp_path)


def test_the_c_driver_has_two_names_and_one_process(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "PACKAGE", "json")
    found = peers.find("aeron-c", "netns", tmp_path)
    assert found == peers.find("pyaeron", "netns", tmp_path)
    assert (found.name, found.missing) == ("pyaeron", "")
    assert found.driver_command("py", "/m/a") == ["py", "-m", "windtunnel.harness.bench.c_driver"]
    assert found.variables("py", "/m/a")["AERON_DIR"] == "/m/a"
    assert found.workload == OURS.workload


def test_the_c_driver_is_missing_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "PACKAGE", "no_such_package")
    assert "no_such_package is not installed" in peers.find("pyaeron", "netns", tmp_path).missing


def test_containers_get_the_package_or_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "PACKAGE", "json")
    monkeypatch.setattr(peers, "IMAGE_PYTHON", sys.version_info[:2])
    found = peers.find("pyaeron", "compose", tmp_path)
    assert found.missing == ""
    assert found.libraries == tmp_path / "json"
    assert (tmp_path / "json" / "json" / "__init__.py").is_file()
    variables = found.variables("py", "/m/a", "/seen/json")
    assert variables["PYTHONPATH"] == "/seen/json"
    monkeypatch.setattr(peers, "IMAGE_PYTHON", (3, 1))
    assert "containers have Python 3.1" in peers.find("pyaeron", "compose", tmp_path).missing


def test_java_needs_a_jar_and_a_java(tmp_path, monkeypatch, jar):
    java = executable(tmp_path / "home" / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    found = peers.find("java", "netns", tmp_path)
    command = found.driver_command("py", "/m/a")
    assert found.missing == ""
    assert command[0] == str(java)
    assert command[-3:] == ["-cp", str(jar), "io.aeron.driver.MediaDriver"]
    assert "-Daeron.dir=/m/a" in command
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Java is not installed" in peers.find("java", "netns", tmp_path).missing
    jar.unlink()
    with pytest.raises(PeerError, match=r"aeron-all\.jar: .* found no such file"):
        peers.find("java", "netns", tmp_path)
    monkeypatch.delenv(peers.JAR_VARIABLE)
    assert f"{peers.JAR_VARIABLE} is not set" in peers.find("java", "netns", tmp_path).missing


def test_containers_have_no_java(tmp_path, jar):
    assert "no Java" in peers.find("java", "compose", tmp_path).missing


def test_a_driver_by_its_path_gets_its_directory_in_a_variable(tmp_path):
    path = executable(tmp_path / "aeronmd")
    found = peers.find(f"aeronmd:{path}", "netns", tmp_path / "store")
    assert (found.name, found.missing) == (f"aeronmd:{path}", "")
    assert found.driver_command("py", "/m/a") == [str(path)]
    assert found.variables("py", "/m/a")["AERON_DIR"] == "/m/a"
    assert not (tmp_path / "store").exists()


def test_a_relative_path_becomes_absolute(tmp_path, monkeypatch):
    path = executable(tmp_path / "aeronmd")
    monkeypatch.chdir(tmp_path)
    assert peers.find("aeronmd:aeronmd", "netns", tmp_path).name == f"aeronmd:{path}"


def test_containers_get_a_copy_of_the_driver(tmp_path):
    path = executable(tmp_path / "my-driver")
    found = peers.find(f"aeronmd:{path}", "compose", tmp_path / "store")
    assert found.driver_command("py", "/m/a", "/seen") == ["/seen/my-driver"]
    assert found.libraries is not None
    assert (found.libraries / "my-driver").read_text() == path.read_text()


def test_a_path_that_names_no_program_is_an_error(tmp_path):
    """A wrong path is not reported as a driver that this machine lacks."""
    path = executable(tmp_path / "aeronmd")
    path.chmod(0o644)
    for name, found in ((path, "is not"), (f"{path}x", "no such file"), (tmp_path, "a folder")):
        with pytest.raises(PeerError, match=f"peer 'aeronmd:{name}': expected .*, found.* {found}"):
            peers.find(f"aeronmd:{name}", "netns", tmp_path)


@pytest.mark.parametrize(
    ("labels", "kind", "missing"),
    [
        ({}, "aeron-c", ""),
        ({"windtunnel.driver": "aeron-java"}, "aeron-java", ""),
        ({"windtunnel.driver": "x"}, "aeron-c", "expected one of ours, aeron-c, aeron-java as its"),
        (None, "aeron-c", "there is no image 'example/driver:1' on this machine"),
    ],
)
def test_an_image_says_which_driver_it_contains(tmp_path, monkeypatch, labels, kind, missing):
    engine = pytest.importorskip("windtunnel.harness.orchestrate.labs.engine")
    monkeypatch.setattr(engine, "labels_of_image", lambda image: labels)
    found = peers.find("image:example/driver:1", "compose", tmp_path)
    assert (found.image, found.kind) == ("example/driver:1", kind)
    assert found.missing.startswith(missing)
    assert bool(found.missing) == bool(missing)
    assert found.variables("py", "/m/a")["AERON_DIR"] == "/m/a"


def test_an_image_needs_containers_and_an_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    name = "image:example/driver:1"
    assert "use --fidelity compose" in peers.find(name, "netns", tmp_path).missing
    assert "no container engine listens" in peers.find(name, "compose", tmp_path).missing
    monkeypatch.setenv("WINDTUNNEL_INSIDE", "1")
    assert "run outside the containers" in peers.find(name, "compose", tmp_path).missing


def test_a_pair_lacks_what_either_side_lacks():
    lame = Subject("lame", ("x",), missing="it has no legs")
    assert Pair(OURS, OURS).missing == ""
    assert Pair(OURS, lame).missing == "lame: it has no legs"
    assert Pair(lame, lame).missing == "lame: it has no legs"
