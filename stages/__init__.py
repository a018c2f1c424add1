"""Compute: the Stage contract, the workers that run stages, and the connectors between them.

Knows nothing of HTTP and nothing of the orchestrator. Torch is imported only below this package.
"""
