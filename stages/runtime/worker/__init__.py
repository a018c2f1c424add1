"""A stage worker, what it is told and what it reports, and its ends of the edges."""
