"""Settings and their sources, API keys, the files that settings name, and the log."""
