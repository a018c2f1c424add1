"""Everything that can end a request, as one tree. Each class says whose fault it was.

OmniError
├── RequestError       a stage could not do this one request; the others go on
├── WorkerDiedError    the worker that ran a stage is gone; everything bound to it fails
├── AbortedError       somebody asked for the end: the client left, a cancel, a shutdown
├── DeadlineError      the request's time is over
├── UnavailableError   a stage that the request needs is not running now
├── OverloadedError    as many requests run and wait as may; try again later
├── StartError         a stage did not come up; the message names it
└── CheckpointError    a model's files are missing or are not what they should be

The server translates them once, in one table (`server/errors.py`).
"""


class OmniError(Exception):
    """Base of the tree."""


class RequestError(OmniError):
    """A stage failed for one request; `__cause__` has the reason.

    Raised out of `Stage.step`, it fails `request_id` and nothing else.
    """

    def __init__(self, request_id: str, message: str) -> None:
        super().__init__(request_id, message)
        self.request_id = request_id
        self.message = message

    def __str__(self) -> str:
        return self.message


class WorkerDiedError(OmniError):
    """A stage worker ended although nobody asked it to."""


class AbortedError(OmniError):
    """The request was ended from outside before it was complete."""


class DeadlineError(OmniError):
    """The request ran longer than it was allowed to."""


class UnavailableError(OmniError):
    """A stage that the request needs is down; try again later."""


class OverloadedError(OmniError):
    """The limits of running and waiting requests are reached; nothing was started."""


class StartError(OmniError):
    """A stage could not be loaded and warmed, or not in time."""


class CheckpointError(OmniError):
    """A model cannot be used: a file is missing, or is not what it should be."""
