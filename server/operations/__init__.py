"""One folder for each endpoint. Each one checks a request, plans it, runs the plan, and replies.

The folders `speech`, `chat`, `completions` and `responses` have the same files:

- `plan.py`: checks the request and turns it into what the stages run.
- `response.py`: the HTTP response that runs the plan.
- `whole.py` (in `speech`: `file.py`): the reply in one piece.
- `events.py`: the reply as server-sent events.

Other files hold what only this endpoint has. `shared` holds what several endpoints need.
"""
