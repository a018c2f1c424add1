"""What operators can see of requests: metrics, log lines, timelines and traces.

There are two sources: one `Timeline` for each request, and counters that are read when somebody
asks for metrics. Nothing here changes how a request runs.
"""

from server.observe.observer import Observer
from server.observe.timeline import TIMELINE, Timeline, note_body

__all__ = ["TIMELINE", "Observer", "Timeline", "note_body"]
