"""Images, from which applications read fragments, messages, batches and blocks."""
