"""What can be seen of requests from outside: metrics, log lines, timelines and traces.

All of it is made from two things: a `Timeline` for each request, and counts that are read when
somebody asks. Nothing here changes what a request does.
"""

from server.observe.observer import Observer
from server.observe.timeline import TIMELINE, Timeline, note_body

__all__ = ["TIMELINE", "Observer", "Timeline", "note_body"]
