"""The authenticator and authorisation service of these tests decide by a client's credentials.

    stranger    is rejected
    guest       is challenged; "the word" is the correct response
    reader      may make all requests except truncation
    else        may make all requests

`CredentialAuthenticator.java` is the same for Java's archive.
"""

import shutil
import subprocess
from pathlib import Path

TRUNCATE = 13
SOURCE = Path(__file__).with_name("CredentialAuthenticator.java")


class CredentialAuthenticator:
    """An authenticator that is also an authorisation service."""

    def __init__(self):
        self._shown = {}

    def on_connect_request(self, session_id, credentials, now_ms):
        self._shown[session_id] = bytes(credentials)

    def on_challenge_response(self, session_id, credentials, now_ms):
        self._shown[session_id] = bytes(credentials)

    def on_connected_session(self, session, now_ms):
        word = self._shown[session.session_id]
        if word == b"stranger":
            session.reject()
        elif word == b"guest":
            session.challenge(b"which word?")
        else:
            session.authenticate(word)

    def on_challenged_session(self, session, now_ms):
        word = self._shown[session.session_id]
        if word == b"the word":
            session.authenticate(word)
        elif word != b"guest":
            session.reject()

    def is_authorised(self, protocol_id, action_id, type_id, principal):
        return action_id != TRUNCATE or bytes(principal) != b"reader"


def compiled(jar, folder):
    """Compile the Java version. Returns its class path folder, or None without a Java compiler."""
    compiler = shutil.which("javac")
    if compiler is None:
        return None
    command = (compiler, "-cp", jar, "-d", str(folder), str(SOURCE))
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder
