"""Network and IPC publications, which are added for clients, drained and removed."""
