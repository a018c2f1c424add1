"""Everything that can end a request, as one tree. Each class says whose fault it was.

OmniError
├── RequestError       a stage failed for one request; other requests go on
├── WorkerDiedError    a stage worker died; all requests bound to it fail
├── AbortedError       the request was ended early: client disconnect, cancel or shutdown
├── DeadlineError      the request took longer than allowed
├── UnavailableError   a stage that the request needs is not running now
├── OverloadedError    the limits of running and waiting requests are reached
├── StartError         a stage did not start; the message names it
└── CheckpointError    a model's files are missing or invalid

The server translates them in one table (`server/errors.py`).
"""


class OmniError(Exception):
    """Base class of all errors of the stages and the orchestrator."""


class RequestError(OmniError):
    """A stage failed for one request; `__cause__` has the reason.

    Raised by `Stage.step`, it fails the request `request_id` and no other.
    """

    def __init__(self, request_id: str, message: str) -> None:
        super().__init__(request_id, message)
        self.request_id = request_id
        self.message = message

    def __str__(self) -> str:
        return self.message


class WorkerDiedError(OmniError):
    """A stage worker ended without being stopped."""


class AbortedError(OmniError):
    """The request was aborted before it was complete."""


class DeadlineError(OmniError):
    """The request took longer than allowed."""


class UnavailableError(OmniError):
    """A stage that the request needs is not running now. A later retry may succeed."""


class OverloadedError(OmniError):
    """The limits of running and waiting requests are reached. Nothing was started."""


class StartError(OmniError):
    """A stage could not be loaded and warmed up, or not before the deadline."""


class CheckpointError(OmniError):
    """A model cannot be loaded: a file is missing or invalid."""
