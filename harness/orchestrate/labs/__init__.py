"""Labs: hosts and a middlebox in network namespaces, in containers, or simulated."""
