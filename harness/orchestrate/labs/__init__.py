"""Labs: hosts and a middlebox in network namespaces or containers."""
