"""Benchmarks that anyone can repeat. Results and plots are stored in `results/`."""
