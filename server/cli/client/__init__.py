"""A client of any server that speaks this API, for the commands."""
