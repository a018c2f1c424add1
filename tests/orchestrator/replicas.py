"""Stages of several scripted workers, wired as a deployment wires them, without threads."""

from orchestrator import AsyncChunkOrchestrator
from stages.contract.errors import WorkerDiedError
from stages.contract.messages import StageInput, StageOutput
from stages.runtime.executors.handle import ReplicatedHandle
from stages.runtime.worker.control import Abort, AbortDone, Output, Submit

MANY = 99  # an edge is named by the number of the replica at its other end


class ScriptedWorker:
    """Holds what is submitted to it; reports what the test says; dies, and comes back."""

    def __init__(self, name):
        self.name = name
        self.replicas = []
        self.open = {}  # the submits of what it holds
        self.seen = []  # all submits
        self.silent = False
        self.is_up = True
        self.num_live = 0

    def post(self, order):
        match order:
            case Submit():
                self.open[order.request_id] = order
                self.seen.append(order)
            case Abort() if not self.silent:
                self.open.pop(order.request_id, None)
                self.replicas[order.position].deliver(AbortDone(order.position, order.request_id))

    def report(self, request_id, data=None, finished=False, error=None):
        position = self.open[request_id].position
        if finished:
            del self.open[request_id]
        self.replicas[position].deliver(
            Output(position, StageOutput(request_id, data, finished, error))
        )

    def die(self):
        self.open.clear()
        self.is_up = False
        for replica in self.replicas:
            replica.worker_ended(WorkerDiedError(f"{self.name} died"))

    def revive(self):
        self.is_up = True
        self.silent = False
        for replica in self.replicas:
            replica.worker_started()


class Fleet:
    """`counts` workers of each of three stages: a chat runs all of them, a speech the last two."""

    def __init__(self, *counts):
        self.stages = [
            [ScriptedWorker(f"{name}-{n}") for n in range(count)]
            for name, count in zip(("thinker", "talker", "code2wav"), counts, strict=True)
        ]
        self.workers = [worker for stage in self.stages for worker in stage]
        self.chat_handles = self._handles(self.stages)
        self.speech_handles = self._handles(self.stages[1:])
        self.chat = AsyncChunkOrchestrator(self.chat_handles, {0, 2}, later)
        self.speech = AsyncChunkOrchestrator(self.speech_handles, {1}, later)
        for worker in self.workers:
            worker.revive()

    def _handles(self, stages):
        handles = []
        for stage in reversed(stages):
            handle = ReplicatedHandle(handles[0] if handles else None)
            for worker in stage:
                worker.replicas.append(
                    handle.add_replica(worker, len(worker.replicas), *[range(MANY)] * 2)
                )
            handles.insert(0, handle)
        return handles

    def holders(self, request_id):
        """The workers that hold a request, in the order of stages."""
        return [worker for worker in self.workers if request_id in worker.open]


def first(last_stage):
    """What stage 0 is submitted with, which is also the prompt."""
    return StageInput(last_stage, (), has_next=last_stage > 0)


def later(stage_id, prompt):
    return StageInput(prompt.params, None, has_next=stage_id < prompt.params)
