"""The data path from one stage to the next. The orchestrator never touches it."""
