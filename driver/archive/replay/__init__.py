"""Replay: handles requests to replay, and sends segment files to a publication block by block.

    replays             starts and stops replays
    replay_plan         derives from a request what to replay
    counter_limit       the limit of a bounded replay
    replayer            the replayer agent, which runs the replays
    replay_run          one replay, from opening its first file to its end
    replay_session      offers the blocks of a recording to a publication
    recording_reader    reads complete frames and sets their session and stream id

The subscriber of a replay receives an image with the positions of the original stream.
"""
