"""From an image into segment files, block by block.

    segment_writer       where a recording's bytes go
    recording_position   the counter that says how far it is
    recording_session    takes the blocks from the image
    recording_events     tells everybody who wants to know
    recorder             the agent: all sessions in turn

Nothing here touches a message by itself: a block is one system call, whatever is in it. Knows
neither the catalog nor who ordered the recording.
"""
