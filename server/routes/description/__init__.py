"""What the exported document says of routes: bodies, answers, errors."""
