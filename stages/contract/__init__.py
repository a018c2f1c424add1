"""What others may know of stages. Free of torch."""
