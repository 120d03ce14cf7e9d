"""What a lab changes on the machine, recorded before the change, and its removal."""
