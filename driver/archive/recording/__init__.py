"""Recording: handles requests to record, and writes images into segment files block by block.

    recording_requests   handles the requests to start, extend and stop recordings
    recordings           all recordings of one archive, from their start to their end
    recorded_stream      a stream that a client asked to record, and its active recordings
    image_recording      begins and finishes the recording of one image
    recorder             the recorder agent, which runs the recording sessions
    recording_session    records one image: blocks from the image to the segment writer
    segment_writer       writes blocks into segment files
    segment_deletions    deletes segment files in the background
    recording_events     publishes the start, progress and stop of a recording
    recording_position   the position counter of a recording

A block is written with one system call. The archive does not parse the messages in it.
"""
