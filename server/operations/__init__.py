"""One folder for each endpoint: a request is checked, planned, run and answered."""
