"""Raw files become a `Household` here, checked once, so that nothing behind this edge checks again."""
