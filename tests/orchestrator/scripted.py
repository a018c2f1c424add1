"""A stage that does what the test says, and a reader that says what came out by when."""

import asyncio
from contextlib import asynccontextmanager

import anyio

from orchestrator import StageOutput
from stages.contract.messages import To


class ScriptedStage:
    """Notes what it is told; reports what the test lets it report."""

    def __init__(self, journal=None, stage_id=0):
        self.stage_id = stage_id
        self.journal = journal if journal is not None else []
        self.submits = []
        self.aborts = []
        self.acknowledges = True
        self.submit_error = None
        self.accepts = asyncio.Event()  # cleared: a submit waits
        self.accepts.set()
        self._outputs = asyncio.Queue()  # noqa: TID251 - a fake's inbox

    async def submit(self, request_id, stage_input):
        if self.submit_error is not None:
            raise self.submit_error
        self.submits.append((request_id, stage_input))
        self.journal.append((self.stage_id, request_id, stage_input))
        await self.accepts.wait()

    async def next_output(self):
        output = await self._outputs.get()
        if isinstance(output, Exception):
            raise output
        return output

    async def abort(self, request_id):
        self.aborts.append(request_id)
        if not self.acknowledges:
            await asyncio.Event().wait()

    def report(self, request_id, data=None, finished=False, error=None, to=To.BOTH):
        self._outputs.put_nowait(StageOutput(request_id, data, finished, error, to))

    def die(self, cause):
        self._outputs.put_nowait(cause)


class CreditedStage(ScriptedStage):
    """A stage with a worker that never dies; notes the credit that it gets back."""

    unacknowledged = ()

    def __init__(self, journal=None, stage_id=0):
        super().__init__(journal, stage_id)
        self.credits = []

    def work_of(self, request_id):
        return None

    def credit(self, request_id, chunks):
        self.credits.append((request_id, chunks))

    async def wait_until_up(self):
        await asyncio.Event().wait()


def scripted_stages(count=3):
    journal = []
    return [ScriptedStage(journal, k) for k in range(count)], journal


@asynccontextmanager
async def running(orchestrator):
    await orchestrator.start()
    try:
        yield orchestrator
    finally:
        await orchestrator.shutdown()


async def settle():
    """Let everything that is ready run; the virtual clock moves by a millionth of a second."""
    await asyncio.sleep(1e-6)


async def nothing_comes(orchestrator):
    """Whether no output is there once everything that is ready has run."""
    with anyio.move_on_after(1e-6):
        await orchestrator.next_output()
        return False
    return True


def told(output):
    """An output as the seed writes it."""
    return (output.stage_id, output.data, output.finished)
