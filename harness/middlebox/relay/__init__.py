"""The relay: raw sockets around the engine, routing, sending, and the report when it ends."""
