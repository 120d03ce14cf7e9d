"""The simulated network: datagrams in flight, routes, and the middlebox between hosts."""
