"""How many requests may run at once where only speech is served: as many as the machine can feed in
real time.

Measured once, before the server is ready, by speaking a few samples at once. While they begin and
end the cores are not full, so that the figure is on the low side; where other work makes it low, a
second or third trial may be better.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import structlog

from stages.contract.messages import AudioChunk
from stages.contract.pipeline import DEFAULT_MAX_RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server.serving.served import ServedModel
    from stages.contract.messages import Request

log = structlog.get_logger(__name__)

MAX_PLACES = 64  # more were not tried
MAX_TRIALS = 3
SHARE = 0.8  # of the sound that is made: others use the machine too
NUM_SAMPLES = 6
LIMIT_S = 2.0


async def choose_max_running(models: Sequence[ServedModel]) -> int:
    """How many places the models of a server have. Raises the error of a sample that fails."""
    if len(models) > 1 or models[0].pipeline.sample is None:
        return DEFAULT_MAX_RUNNING
    rate = 0.0
    for _ in range(MAX_TRIALS):
        rate = max(rate, await audio_s_per_s(models[0], models[0].pipeline.sample))
        if max_running_at(rate) >= DEFAULT_MAX_RUNNING:
            break
    log.info("places_measured", max_running=max_running_at(rate), audio_s_per_s=round(rate, 1))
    return max_running_at(rate)


def max_running_at(rate: float) -> int:
    """The places of a machine that makes `rate` seconds of sound in a second."""
    return max(1, min(MAX_PLACES, int(SHARE * rate)))


async def audio_s_per_s(
    served: ServedModel, sample: Request, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of sound that come in a second, of several samples together; looks for `LIMIT_S`."""
    began_s = clock()
    audio_s = 0.0
    with anyio.move_on_after(LIMIT_S):
        async with served.open((sample,) * NUM_SAMPLES, 2 * LIMIT_S, "")() as outputs:
            async for output in outputs:
                if output.error is not None:
                    raise output.error
                if isinstance(output.data, AudioChunk):
                    audio_s += len(output.data.samples) / output.data.rate_hz
    return audio_s / (clock() - began_s)
