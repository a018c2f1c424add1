"""Speech: a request checked and planned, and its answer."""
