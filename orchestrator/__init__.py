"""One request's life: its state and transitions, the gate, prewarming, deadlines, streams.

It knows stages only by their handles, and never sees a chunk that travels between them. Begin with
`orchestrator.py`, then `dispatcher.py` and `state.py`.
"""

from orchestrator.admission import Admission
from orchestrator.orchestrator import AsyncChunkOrchestrator, Orchestrator
from orchestrator.record import RequestRecord, StageRecord
from orchestrator.state import OrchOutput, ReqState
from orchestrator.stream import OutputStream
from orchestrator.supervisor import Patience, Supervisor
from stages.contract.handle import StageHandle, WorkerHandle
from stages.contract.messages import StageOutput

__all__ = [
    "Admission",
    "AsyncChunkOrchestrator",
    "OrchOutput",
    "Orchestrator",
    "OutputStream",
    "Patience",
    "ReqState",
    "RequestRecord",
    "StageHandle",
    "StageOutput",
    "StageRecord",
    "Supervisor",
    "WorkerHandle",
]
