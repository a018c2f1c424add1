"""One file for each group of URLs. A route reads, has the request checked, and answers."""
