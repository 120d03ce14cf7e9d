"""The relay: raw sockets around the engine, routing, departure, and the report at the end."""
