"""What can be seen of requests from outside: metrics, log lines, timelines and traces.

All of it is made from two things: a `Trail` for each request, and counts that are read when
somebody asks. Nothing here changes what a request does.
"""

from server.watch.trail import TRAIL, Trail, note_body
from server.watch.watch import Watch

__all__ = ["TRAIL", "Trail", "Watch", "note_body"]
