"""Whatever clients send, the archive goes on, and others are served as before."""

import random
from dataclasses import fields

import pytest

from driver.archive.protocol import replication, requests, responses
from driver.archive.protocol.codec import encode
from driver.archive.protocol.layout import BY_TEMPLATE_ID, Message
from driver.archive.protocol.requests import ArchiveIdRequest, StartPositionRequest
from driver.archive.tool.program import main
from tests.unit.driver.archive.running.own_archive import Ok, Talker, own_archive
from tests.unit.driver.archive.running.own_stream import FRAME, IPC, STREAM, Reader, message

REQUESTS = [
    kind for kind in BY_TEMPLATE_ID.values()
    if kind.__module__ in (requests.__name__, replication.__name__)
]  # fmt: skip
NUMBERS = [
    0, 1, 2, -1, -2, 5, 31, 32, FRAME, 10 * FRAME, 65_536, 131_072, -32, STREAM,
    (1 << 31) - 1, -(1 << 31), (1 << 62), (1 << 63) - 1, -(1 << 63),
]  # fmt: skip
TEXTS = [
    "", IPC, "aeron:ipc", "aeron:udp?endpoint=10.0.0.1:20900", "rubbish", "aeron:udp", "=|=", "\0",
    "aeron:ipc?" + "alias=" + "x" * 3000, "x" * 5000, "aeron:ipc?session-id=rubbish",
    "aeron:udp?control-mode=response|control=10.0.0.1:20901", "aeron-spy:aeron:ipc",
    "aeron:ipc?term-length=3|mtu=7|linger=-1", "aeron:ipc?rcv-wnd=9999999999999999999999",
]  # fmt: skip


def any_request(chance, kind: type[Message], session_id):
    """A request that could be read, with values that make sense or none."""
    values = {}
    codes = {field.name: field for field in kind.LAYOUT.fixed}
    for field in fields(kind):
        fixed = codes.get(field.name)
        if field.name == "control_session_id":
            values[field.name] = session_id
        elif fixed is None:
            is_text = next(each for each in kind.LAYOUT.variable if each.name == field.name).is_text
            text = chance.choice(TEXTS)
            values[field.name] = text if is_text else text.encode()
        elif fixed.enumeration is not None:
            values[field.name] = chance.choice(list(fixed.enumeration))
        else:
            number = chance.choice(NUMBERS)
            if fixed.code == "i":
                number = (number + (1 << 31)) % (1 << 32) - (1 << 31)
            values[field.name] = number
    return kind(**values)


def damaged(chance, content):
    """The bytes of a message, changed, cut or lengthened."""
    content = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        way = chance.randrange(5)
        at = chance.randrange(len(content)) if content else 0
        if way == 0 and content:
            content[at] ^= 1 << chance.randrange(8)
        elif way == 1 and content:
            content[at] = chance.choice((0, 0xFF, 0x7F, 0x80))
        elif way == 2:
            del content[at:]
        elif way == 3:
            content += chance.randbytes(chance.randint(1, 64))
        elif len(content) >= 4:
            at = chance.randrange(len(content) - 3)
            content[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\0\0\0@"))
    return bytes(content)


def post_all(own, talker, contents):
    """Offer without waiting for anything in between.

    Who connects with a response channel that cannot be is cut off, and comes again.
    """
    streams = iter(range(30, 10_000))
    for content in contents:
        # What no publication of this length of term takes cannot be sent.
        content = content[: talker.requests.max_message_length]
        while talker.requests.offer(content) <= 0:
            own.step()
            if not talker.requests.is_connected:
                talker = Talker(own, response_stream=next(streams))


@pytest.mark.parametrize("seed", range(2))
def test_requests_of_any_content_leave_the_archive_whole(tmp_path, monkeypatch, capsys, seed):
    chance = random.Random(seed)
    with own_archive(tmp_path, monkeypatch) as own:
        talker, other = own.talk(), own.talk(response_stream=21)
        talker.stopped_recording(20)
        talker.stopped_recording(200, stream=STREAM + 1)
        talker.start(stream=STREAM + 2)
        publication = talker.client.add_exclusive_publication(IPC, STREAM + 2)
        talker.publish(publication, 20)
        kinds = [kind for kind in REQUESTS if kind is not requests.CloseSessionRequest]
        contents = (
            encode(any_request(chance, chance.choice(kinds), talker.session_id)) for _ in range(400)
        )
        post_all(own, talker, contents)
        own.run_for(2_000_000_000)
        assert other.ask(ArchiveIdRequest) == Ok(77)
        assert own.talk(response_stream=22).ask(ArchiveIdRequest) == Ok(77)
    assert main(["verify", "-a", "--read-only", "--dir", str(tmp_path / "archive")]) == 0
    assert "recording" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(2))
def test_damaged_messages_of_a_stranger_change_nothing(tmp_path, monkeypatch, seed):
    chance = random.Random(100 + seed)
    with own_archive(tmp_path, monkeypatch) as own:
        talker, stranger = own.talk(), own.talk(response_stream=21)
        talker.stopped_recording(20)
        before = (tmp_path / "archive" / "archive.catalog").read_bytes()
        kinds = [
            kind for kind in BY_TEMPLATE_ID.values()
            if kind.__module__ in (requests.__name__, replication.__name__, responses.__name__)
        ]  # fmt: skip
        contents = (
            damaged(chance, encode(any_request(chance, chance.choice(kinds), -1)))
            for _ in range(1_500)
        )
        post_all(own, stranger, contents)
        own.run_for(6_000_000_000)
        assert talker.ask(StartPositionRequest, recording_id=0) == Ok(0)
        assert (tmp_path / "archive" / "archive.catalog").read_bytes() == before
        reader = Reader(talker)
        talker.ask_replay(0)
        assert reader.until_end() == [message(number) for number in range(20)]
        own.run_for(6_000_000_000)
        sessions = [each for each in talker.client.counters if each.type_id == 113]
        assert len(sessions) <= 2
