"""Measurements that anyone can repeat; results and plots are kept in `results/`."""
