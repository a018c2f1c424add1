"""Scripts and pins of the rivals. Their own interpreters run them; they import nothing of ours."""
