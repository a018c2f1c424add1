"""One file for each group of URLs. A route reads the body, plans the request, and responds."""
