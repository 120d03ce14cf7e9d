"""Publications, network and IPC: added for clients, handed over, drained and removed."""
