"""Images: reading fragments, messages, batches and blocks, also with compiled handlers."""
