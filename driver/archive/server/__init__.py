"""The archive server, which assembles, starts and stops an archive.

archive              assembles an archive and runs its agents
archive_directory    prepares the directory: creates, empties or recovers it
agent_thread         runs an agent in a separate thread
driver_child         runs a media driver as a child process
id_generator         generates session ids and replay tokens
warm_up              compiles the archive's kernels
"""
