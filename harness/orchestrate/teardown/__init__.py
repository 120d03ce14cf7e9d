"""Records of what labs change on the machine, and the removal of what is left behind."""
