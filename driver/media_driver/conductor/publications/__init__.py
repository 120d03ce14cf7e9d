"""Network and IPC publications: added for clients, drained and removed."""
