"""Network and IPC publications, from a client's add command until they are drained and freed."""
