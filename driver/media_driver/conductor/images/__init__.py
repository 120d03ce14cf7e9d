"""Images and subscriptions: created on SETUP, linked to readers, drained and removed."""
