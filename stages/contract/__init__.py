"""The contract of the stages: everything that other packages may know of them. Torch-free.

- `stage`: what a model implements. `messages`: what goes in and out of a stage.
- `handle`: what the orchestrator calls. `pipeline`: what the server knows of a served model.
- `errors`: everything that can end a request.
- `channel`, `histogram`, `work`: small types that several packages share.
"""
