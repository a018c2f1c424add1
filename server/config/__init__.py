"""Settings and where they come from, API keys, files named by settings, the log."""
