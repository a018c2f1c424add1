"""Runs stages: workers, executors, connectors, deployments."""
