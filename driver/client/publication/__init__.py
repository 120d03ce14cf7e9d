"""Publications: concurrent and exclusive ones, offers and claims."""
