"""An archive as a whole: made, run and ended.

archive_directory    the files that are there, mended after a kill
agent_thread         an agent in a thread of its own
archive              everything introduced to everything else
driver_child         a media driver of its own, as a child process
"""
