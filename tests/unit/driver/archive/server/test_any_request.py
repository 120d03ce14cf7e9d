"""Arbitrary requests do not end the archive, which continues to serve other clients."""

import random

import pytest

from tests.fuzz.archive_requests import HERE, post_all
from tests.unit.driver.archive.server.own_archive import Ok, own_archive
from tests.unit.driver.archive.server.own_stream import IPC, STREAM, Reader, message
from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest, StartPositionRequest
from windtunnel.driver.archive.tool.program import main
from windtunnel.harness.fuzz.archive.messages import ANY, READABLE, any_request, damaged


@pytest.mark.parametrize("seed", range(2))
def test_arbitrary_requests_damage_no_recording(tmp_path, monkeypatch, capsys, seed):
    chance = random.Random(seed)
    with own_archive(tmp_path, monkeypatch) as env:
        client, other = env.connect_client(), env.connect_client(response_stream=21)
        client.stopped_recording(20)
        client.stopped_recording(200, stream=STREAM + 1)
        client.start(stream=STREAM + 2)
        publication = client.aeron.add_exclusive_publication(IPC, STREAM + 2)
        client.publish(publication, 20)
        contents = (
            encode(any_request(chance, chance.choice(READABLE), client.session_id, HERE))
            for _ in range(400)
        )
        post_all(env, client, contents)
        env.run_for(2_000_000_000)
        assert other.request(ArchiveIdRequest) == Ok(77)
        assert env.connect_client(response_stream=22).request(ArchiveIdRequest) == Ok(77)
    assert main(["verify", "-a", "--read-only", "--dir", str(tmp_path / "archive")]) == 0
    assert "recording" in capsys.readouterr().out


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("seed", range(2))
def test_damaged_messages_without_a_session_change_nothing(tmp_path, monkeypatch, seed):
    chance = random.Random(100 + seed)
    with own_archive(tmp_path, monkeypatch) as env:
        client, other = env.connect_client(), env.connect_client(response_stream=21)
        client.stopped_recording(20)
        before = (tmp_path / "archive" / "archive.catalog").read_bytes()
        contents = (
            damaged(chance, encode(any_request(chance, chance.choice(ANY), -1, HERE)))
            for _ in range(1_500)
        )
        post_all(env, other, contents)
        env.run_for(6_000_000_000)
        assert client.request(StartPositionRequest, recording_id=0) == Ok(0)
        assert (tmp_path / "archive" / "archive.catalog").read_bytes() == before
        reader = Reader(client)
        client.request_replay(0)
        assert reader.until_end() == [message(number) for number in range(20)]
        env.run_for(6_000_000_000)
        sessions = [each for each in client.aeron.counters if each.type_id == 113]
        assert len(sessions) <= 2
