"""A stage worker, the orders that it gets, the reports that it sends, and its edges."""
