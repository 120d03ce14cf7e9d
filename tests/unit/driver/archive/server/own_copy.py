"""Two archives that use one driver. One of them replicates the other's recordings.

client of the source --> source archive --replay--> archive <-- client (replicate)
"""

from contextlib import contextmanager

from tests.unit.driver.archive.server.own_archive import LOCAL, Ok, own_archive
from windtunnel.driver.archive.protocol.replication import ReplicateRequest2
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest

SOURCE_ID = 78
SOURCE_STREAM = 110
SOURCE_RESPONSES = 120
LINGERED = 10_000_000_000
"""The time after which the session id of a closed publication may be used again."""
UDP = "aeron:udp?endpoint=10.0.0.1:20700"


@contextmanager
def two_archives(folder, monkeypatch):
    """Yield (environment, client of the destination, client of the source)."""
    with own_archive(
        folder, monkeypatch, control_response_channel=LOCAL, replication_channel=UDP
    ) as env:
        env.beside("source", local_control_stream_id=SOURCE_STREAM, archive_id=SOURCE_ID)
        source = env.connect_client(stream=SOURCE_STREAM, response_stream=SOURCE_RESPONSES)
        assert source.request(ArchiveIdRequest) == Ok(SOURCE_ID)
        yield env, env.connect_client(), source


def replicate(client, source_id=0, **changed):
    values = {
        "src_recording_id": source_id, "dst_recording_id": -1, "stop_position": -1,
        "channel_tag_id": -1, "subscription_tag_id": -1, "src_control_stream_id": SOURCE_STREAM,
        "file_io_max_length": -1, "replication_session_id": -1, "src_control_channel": LOCAL,
        "live_destination": "", "replication_channel": "", "encoded_credentials": b"",
        "src_response_channel": "",
    } | changed  # fmt: skip
    return client.request(ReplicateRequest2, **values)


def replication_messages(client, replication_id):
    """Return the messages of a replication, without the subscription id."""
    return [
        ("OK",) if each[0] == "OK" else each for each in client.summaries(replication_id)
    ]  # fmt: skip


def until_end(env, client, replication_id, last="REPLICATE_END"):
    env.until(
        lambda: any(each[0] == last for each in client.summaries(replication_id)), turns=20_000
    )
    env.run_for(100_000_000)
    return replication_messages(client, replication_id)
