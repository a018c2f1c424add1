"""`POST /v1/completions`: plans completions, and replies in one JSON body or in events."""
