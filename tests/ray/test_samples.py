"""The same request and seed: the same samples in threads, in processes, on Ray, and mixed."""

import numpy as np
import pytest

from orchestrator import AsyncChunkOrchestrator
from stages.contract.messages import AudioChunk, TalkerParams
from stages.contract.pipeline import prewarm_fn, speech_request
from stages.contract.roles import Role
from stages.models.registry import build
from stages.runtime.placement import BuildConfig, Placement
from tests.ray.conftest import placement

pytestmark = [pytest.mark.ray, pytest.mark.model]

TEXT = "Rice is often served in round bowls. The juice of lemons makes fine punch, they say."


async def spoken(on_talker, on_code2wav, cache_dir):
    config = BuildConfig(cache_dir, {Role.TALKER: on_talker, Role.CODE2WAV: on_code2wav})
    deployment = build(["piper-joe"], config)
    await deployment.start(120)
    [model] = deployment.models
    [pipeline] = model.pipelines
    orchestrator = AsyncChunkOrchestrator(pipeline.handles, pipeline.final_stage_ids, prewarm_fn)
    await orchestrator.start()
    params = TalkerParams(model.voices[0].name, seed=5)
    try:
        async with orchestrator.stream(speech_request(TEXT, params)) as outputs:
            chunks = [o.data.samples async for o in outputs if isinstance(o.data, AudioChunk)]
    finally:
        await orchestrator.shutdown()
        await deployment.stop()
    return np.concatenate(chunks).astype(int)


async def test_the_same_seed_gives_the_same_samples_everywhere(cluster, model_cache_dir):
    thread, process = Placement(executor="thread"), Placement(executor="process")
    on_ray, again, last = (placement(cluster, f"samples-{n}") for n in range(3))
    placements = [
        (thread, thread),
        (process, process),
        (on_ray, on_ray),
        (thread, again),
        (last, process),
    ]
    first, *others = [await spoken(*pair, model_cache_dir) for pair in placements]
    assert len(first) > 24_000
    for other in others:
        assert len(other) == len(first)
        assert np.abs(other - first).max() <= 1
