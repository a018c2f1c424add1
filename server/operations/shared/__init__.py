"""What several operations need."""
