"""The model families that can be served. Each builds pipelines from stages, workers and edges."""
