"""How many requests may run at once: on a speech-only server, as many as it can serve in real time.

This is measured once, before the server is ready, by speaking a few samples at the same time. The
result is rather low, as not all cores are busy while they start and end. Other work on the machine
can lower it further; then a second or third trial may give a better result.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import structlog

from stages.contract.model import DEFAULT_MAX_RUNNING
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server.serving.served import ServedModel, ServedPipeline
    from stages.contract.messages import Request

log = structlog.get_logger(__name__)

MAX_MEASURED_RUNNING = 64  # larger values were not tested
MAX_TRIALS = 3
USED_SHARE = 0.8  # of the measured rate; the rest is a reserve for other work
NUM_SAMPLES = 6
TRIAL_S = 2.0


async def choose_max_running(models: Sequence[ServedModel]) -> int:
    """The `max_running` of a server of `models`. Raises the error of a sample that fails."""
    speech, sample = models[0].speech, models[0].model.sample
    if len(models) > 1 or sample is None or speech is None:
        return min(each.model.max_running for each in models)
    rate = 0.0
    for _ in range(MAX_TRIALS):
        rate = max(rate, await audio_s_per_s(speech, sample))
        if max_running_at(rate) >= DEFAULT_MAX_RUNNING:
            break
    log.info("places_measured", max_running=max_running_at(rate), audio_s_per_s=round(rate, 1))
    return max_running_at(rate)


def max_running_at(rate: float) -> int:
    """The `max_running` of a machine that makes `rate` seconds of audio per second."""
    return max(1, min(MAX_MEASURED_RUNNING, int(USED_SHARE * rate)))


async def audio_s_per_s(
    speech: ServedPipeline, sample: Request, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of audio per second of several samples together, within `TRIAL_S` at most."""
    began_s = clock()
    audio_s = 0.0
    with anyio.move_on_after(TRIAL_S):
        async with speech.open((sample,) * NUM_SAMPLES, 2 * TRIAL_S, "")() as outputs:
            async for output in outputs:
                if output.error is not None:
                    raise output.error
                if output.role == Role.CODE2WAV and not output.is_end:
                    audio_s += len(output.data.samples) / output.data.rate_hz
    return audio_s / (clock() - began_s)
