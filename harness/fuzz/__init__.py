"""Attacks on a live driver, a live archive and the tools, with checked streams beside them."""
