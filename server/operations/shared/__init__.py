"""Code that several operations share."""
