"""The simulated network: datagrams in flight, routes, the middlebox between hosts."""
