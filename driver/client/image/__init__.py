"""Images, from which programs read fragments, messages, batches and blocks."""
