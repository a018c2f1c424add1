"""`POST /v1/responses`, text only: plans a response, sends it, and stores it for later requests."""
