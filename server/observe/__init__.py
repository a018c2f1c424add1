"""What can be seen of requests from outside: metrics, log lines, timelines and traces.

All of it is made from two things: a `Trail` for each request, and counts that are read when
somebody asks. Nothing here changes what a request does.
"""

from server.observe.observer import Observer
from server.observe.trail import TRAIL, Trail, note_body

__all__ = ["TRAIL", "Observer", "Trail", "note_body"]
