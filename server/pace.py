"""How many requests may run at once: as many as the machine can feed in real time.

Measured once, before the server is ready, by speaking a few samples at once. While they begin and
end the cores are not full, so that the figure is on the low side.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import structlog

from stages.messages import AudioChunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server.service import Served
    from stages.messages import Request

log = structlog.get_logger(__name__)

PLACES = 16  # where nothing is measured, and the most beside chats
MAX_PLACES = 64  # more were not tried
SHARE = 0.8  # of the sound that is made: others use the machine too
NUM_SAMPLES = 6
LIMIT_S = 2.0


async def places_for(models: Sequence[Served]) -> int:
    """How many places the models of a server have. Raises the error of a sample that fails."""
    rates = [await audio_s_per_s(one, one.pipeline.sample) for one in models if one.pipeline.sample]
    if not rates:
        return PLACES
    places = places_at(min(rates), beside_chats=any(one.chats for one in models))
    log.info("places_measured", max_running=places, audio_s_per_s=round(min(rates), 1))
    return places


def places_at(rate: float, *, beside_chats: bool) -> int:
    """The places of a machine that makes `rate` seconds of sound in a second."""
    return max(1, min(PLACES if beside_chats else MAX_PLACES, int(SHARE * rate)))


async def audio_s_per_s(
    served: Served, sample: Request, clock: Callable[[], float] = time.perf_counter
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
