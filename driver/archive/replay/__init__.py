"""From segment files to a publication, block by block.

    recording_reader    whole frames of a recording, addressed to another session
    replay_session      offers them where they belong
    replay_run          a replay from its first file to its end
    replayer            the agent: all runs in turn

A subscriber of a replay sees the positions of the original stream. Knows neither the catalog nor
who ordered the replay.
"""
