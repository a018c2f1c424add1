"""Fake stages with faults, and a server of them: `python -m tests.chaos.faults EXECUTOR REPLICAS`.

Words in the text of a request trigger the faults. `fail` raises an error for the request, `stall`
makes it wait for ever, `die` kills the worker, and `linger` blocks the worker for a while.

All time limits of the server are an hour, so that none is reached on a slow machine. A test that
needs a shorter one sets it with a further argument, `NAME=VALUE`.
"""

import os
import sys
import threading

import anyio
import anyio.to_thread

from server.config.logs import configure_logs
from server.config.settings import Settings
from server.serve import listen, serve
from server.serving.service import Service
from stages.contract.errors import RequestError
from stages.models.fake import family as fake
from stages.models.fake.stages import FakeTalker
from stages.runtime.placement import Placement
from tests.deployments import build_fake

LINGER_S = 0.3
ENDLESS = ("deadline_s", "max_wait_s", "stall_s", "shutdown_s", "body_s", "ping_s")
ENDLESS_S = 3600


class FaultyTalker(FakeTalker):
    """A talker with the faults that the text asks for."""

    def ready(self, request_id, credit):
        first = self._requests[request_id].text.split(maxsplit=1)[:1]
        return first != ["stall"] and super().ready(request_id, credit)

    def step(self, credit):
        for request_id in credit:
            word = self._requests[request_id].text.lstrip().partition(" ")[0]
            if word == "fail":
                raise RequestError(request_id, "the text asked for it")
            if word == "die":
                os.abort() if threading.current_thread() is threading.main_thread() else _fail()
            if word == "linger":
                threading.Event().wait(LINGER_S)
            yield from super().step({request_id: credit[request_id]})


def _fail():
    raise MemoryError("the text asked for it")


def main(executor, replicas, *changes):
    """Serve the faulty stages."""
    fake.FakeTalker = FaultyTalker
    limits = dict.fromkeys(ENDLESS, ENDLESS_S)
    limits |= dict(change.split("=") for change in changes)
    settings = Settings(
        model="fake", port=0, max_running=64, max_waiting=64, log_level="error", **limits
    )
    configure_logs(settings)
    on = Placement(executor=executor, replicas=int(replicas))
    anyio.run(run, Service(settings, lambda: build_fake(on, on, on)))


async def run(service):
    """Serve with one thread in the pool; otherwise the number of threads depends on timing."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = 1
    await serve(service, listen(service.settings), lambda line: print(line, flush=True))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
