"""The socket of the process of a lab, and access to it."""

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from windtunnel.harness.lab.control.control_socket import NoLab, ask, is_up, socket_path
from windtunnel.harness.lab.errors import LabError


def answering(folder: Path, answer: bytes, seen: list[dict]) -> threading.Thread:
    """Answer one request at the socket of the lab `one`."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(socket_path("one", folder)))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            line = connection.makefile("rb").readline()
            if line:
                seen.append(json.loads(line))
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_request_is_answered(tmp_path: Path) -> None:
    seen: list[dict] = []
    thread = answering(tmp_path, b'{"ok": {"x": 1}}\n', seen)
    assert ask("one", {"do": "status"}, tmp_path) == {"x": 1}
    thread.join()
    assert seen == [{"do": "status"}]


@pytest.mark.parametrize(
    ("answer", "text"), [(b'{"error": "no link"}\n', "no link"), (b"", "the lab has ended")]
)
def test_a_refusal_is_an_error(tmp_path: Path, answer: bytes, text: str) -> None:
    thread = answering(tmp_path, answer, [])
    with pytest.raises(LabError, match=text):
        ask("one", {"do": "start"}, tmp_path)
    thread.join()


def test_a_lab_is_up_while_its_socket_responds(tmp_path: Path) -> None:
    assert not is_up("one", tmp_path)
    thread = answering(tmp_path, b'{"error": "busy"}\n', [])
    assert is_up("one", tmp_path)
    thread.join()
    # The socket still exists, but no process listens.
    assert socket_path("one", tmp_path).exists()
    assert not is_up("one", tmp_path)
    with pytest.raises(NoLab, match="no lab 'one' is up"):
        ask("one", {}, tmp_path)


def test_the_folder_is_private(tmp_path: Path) -> None:
    path = socket_path("one", tmp_path)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.parent.chmod(0o755)
    with pytest.raises(LabError, match="only this user can enter"):
        socket_path("one", tmp_path)


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (tmp_path / f"windtunnel-{os.getuid()}").symlink_to(elsewhere)
    with pytest.raises(LabError, match="only this user can enter"):
        socket_path("one", tmp_path)


@pytest.mark.parametrize("name", ["../x", "", "A", "x" * 50, "a/b"])
def test_a_name_is_not_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(LabError, match="expected a name"):
        socket_path(name, tmp_path)
