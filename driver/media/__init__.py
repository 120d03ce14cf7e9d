"""UDP sockets and in-memory links that send and receive frames in batches."""
