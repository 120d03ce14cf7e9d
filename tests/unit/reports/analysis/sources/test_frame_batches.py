"""Parcels keep every frame, separate streams and keep their order, for any order of input."""

import numpy as np
import pyarrow as pa
import pytest

from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.options import OUTCOME_COLUMNS
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import ReadSettings
from windtunnel.reports.analysis.reading.schema import FRAMES, READ_FRAMES, decode_dictionaries
from windtunnel.reports.analysis.sources import frame_batches
from windtunnel.reports.analysis.sources.frame_batches import (
    BATCH_BODY,
    BATCH_ORDER,
    FRAME_BATCHES,
    Packer,
    unpack_frames,
)
from windtunnel.reports.analysis.streams.stream_set import KEY_NAMES, by_stream


def addressed(frames, count):
    """Return frames whose source addresses are those of `count` hosts in turn."""
    texts = pa.array([f"10.1.{each // 250}.{each % 250}" for each in range(count)])
    column = texts.take(pa.array(np.arange(frames.num_rows) % count))
    return frames.set_column(
        frames.schema.get_field_index("source_address"), "source_address", column
    )


def as_read(frames):
    """Return frames with dictionary-encoded texts, as a reader makes them for a batch."""
    return pa.RecordBatch.from_pylist(frames.to_pylist(), schema=READ_FRAMES)


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Three streams of one capture, their frames mixed, from many hosts, as one batch."""
    sent = [made.stream_packets(400, session=session) for session in (7, -8, 9)]
    mixed = [packet for together in zip(*sent, strict=True) for packet in together]
    path = tmp_path_factory.mktemp("mixed") / "mixed.pcap"
    path.write_bytes(made.pcap(mixed))
    (batch,) = local_frames(find_captures([str(path)]), ReadSettings()).table().to_batches()
    return addressed(batch, 300)


def packed(frames, rows_of_batch):
    packer = Packer()
    found = []
    for first in range(0, frames.num_rows, rows_of_batch):
        found += packer.feed(as_read(frames.slice(first, rows_of_batch)))
    found += packer.finish()
    assert not list(packer.finish())
    return pa.Table.from_batches(found, schema=FRAME_BATCHES)


def streams_of(table):
    """Return the frames of each key from its batches, in the order in which Spark delivers them."""
    order = [(name, "ascending") for name in (*KEY_NAMES, *BATCH_ORDER)]
    found = {}
    for batch in table.sort_by(order).to_batches(max_chunksize=3):
        for key, rows in unpack_frames(batch):
            found.setdefault(key, []).append(decode_dictionaries(rows))
    return {key: pa.Table.from_batches(rows).combine_chunks() for key, rows in found.items()}


def test_no_packet_is_divided_between_two_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_batches, "BATCH_FRAMES_MAX", 5)
    sizes = (1, 3, 2, 5, 4, 1, 7, 2)
    offsets, packets = iter(range(0, 3_200, 32)), []
    for index, size in enumerate(sizes):
        payload = b"".join(made.data(next(offsets)) for _ in range(size))
        packets.append(made.packet(made.START_NS + index, payload))
    path = tmp_path / "batched.pcap"
    path.write_bytes(made.pcap(packets))
    (batch,) = local_frames(find_captures([str(path)]), ReadSettings()).table().to_batches()
    table = packed(batch, 10_000)
    assert [rows.num_rows for each in table.to_batches() for _, rows in unpack_frames(each)] == [
        4, 2, 5, 5, 5, 4,
    ]  # fmt: skip


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("limits", [(1 << 14, 1 << 18), (50, 1 << 18), (1 << 14, 120), (1, 1)])
@pytest.mark.parametrize("rows_of_batch", [1, 7, 10_000])
def test_parcels_keep_every_frame_of_each_stream_in_order(
    frames, limits, rows_of_batch, monkeypatch
):
    monkeypatch.setattr(frame_batches, "BATCH_FRAMES_MAX", limits[0])
    monkeypatch.setattr(frame_batches, "PENDING_FRAMES_MAX", limits[1])
    expected = {
        key: pa.Table.from_batches([rows.select(BATCH_BODY.names)])
        for key, rows in by_stream(frames.select(OUTCOME_COLUMNS))
    }
    assert len(expected) == 3
    table = packed(frames, rows_of_batch)
    assert streams_of(table) == expected
    lengths = [rows.num_rows for batch in table.to_batches() for _, rows in unpack_frames(batch)]
    assert max(lengths) <= limits[0]


def test_the_header_has_the_place_of_the_first_frame(frames, monkeypatch):
    monkeypatch.setattr(frame_batches, "BATCH_FRAMES_MAX", 100)
    for batch in packed(frames, 10_000).to_batches():
        for head, (key, rows) in zip(batch.to_pylist(), unpack_frames(batch), strict=True):
            assert tuple(head[name] for name in KEY_NAMES) == key
            for name in (*BATCH_ORDER, "time_ns"):
                assert head[name] == rows.column(name)[0].as_py()


def test_frames_of_no_stream_are_left_out():
    alone = pa.RecordBatch.from_pylist(
        [{"vantage_point": "here", "frame_type": "RES", "frame_length": 40}], schema=FRAMES
    )
    assert packed(alone, 1).num_rows == 0


@pytest.mark.parametrize("hosts", [1, 2_000])
def test_a_parcel_is_small_enough_for_spark_to_hold_several(frames, hosts):
    (rows,) = [rows for key, rows in by_stream(frames) if key[1] == 7]
    many = rows.take(pa.array(np.arange(frame_batches.BATCH_FRAMES_MAX) % rows.num_rows))
    (parcel,) = packed(addressed(many, hosts), 10_000)["frames"]
    assert len(parcel.as_py()) < 2_500_000


def test_a_parcel_has_only_the_texts_of_its_frames(frames):
    (rows,) = [rows for key, rows in by_stream(frames) if key[1] == 7]
    many = as_read(addressed(rows.take(pa.array(np.arange(2_000) % rows.num_rows)), 2_000))
    packer = Packer()
    found = [*packer.feed(many.slice(0, 4)), *packer.feed(many.slice(1_000, 3)), *packer.finish()]
    (parcel,) = pa.Table.from_batches(found, schema=FRAME_BATCHES)["frames"]
    assert len(parcel.as_py()) < 8_000
