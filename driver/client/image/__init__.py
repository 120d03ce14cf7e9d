"""Reading: images of a subscription, fragments, messages, batches and compiled handlers."""
