"""Both forms of the orchestrator over the fake pipelines, with real workers and edges."""

import anyio
import numpy as np
import pytest

from orchestrator import AsyncChunkOrchestrator, Orchestrator
from stages.contract.errors import StartError
from stages.contract.messages import (
    AudioChunk,
    AudioEnd,
    ChatPrompt,
    Message,
    Sampling,
    StageInput,
    TalkerParams,
    TextChunk,
    TextEnd,
    ThinkerParams,
)
from stages.contract.pipeline import chat_request, prewarm_fn, speech_request
from stages.runtime.deployment import Deployment
from stages.runtime.placement import Placement
from stages.runtime.replicas import make_replicas
from tests.deployments import build_fake

VOICE = TalkerParams("fake-low", seed=1)


@pytest.fixture(
    params=[
        (["thread"] * 3, 1),
        (["process"] * 3, 1),
        (["thread"] * 3, 2),
        (["process"] * 3, 3),
        (["thread", "process", "thread"], 2),
        (["process", "thread", "process"], 1),
    ],
    ids=["thread", "process", "2 threads", "3 processes", "a process between", "a thread between"],
)
async def deployment(request):
    executors, replicas = request.param
    deployment = build_fake(*(Placement(executor=each, replicas=replicas) for each in executors))
    await deployment.start()
    yield deployment
    await deployment.stop()


async def collect(orchestrator, request):
    async with orchestrator.stream(request, last_stage=request.last_stage) as outputs:
        return [output async for output in outputs]


def num_steps(workers):
    """The number of steps that the workers have reported."""
    return sum(worker.step_stats.step_s.cumulative[-1] for worker in workers)


def chat(text, speech=None, max_tokens=100):
    prompt = ChatPrompt((Message("user", text),))
    return chat_request(ThinkerParams(prompt, Sampling(seed=1), max_tokens), speech)


async def test_speech_gives_its_tones_and_then_its_end(deployment):
    speech = deployment.models[0].pipelines[0]
    orchestrator = AsyncChunkOrchestrator(speech.handles, speech.final_stage_ids, prewarm_fn)
    await orchestrator.start()
    outputs = await collect(orchestrator, speech_request("hello there you", VOICE))
    await orchestrator.shutdown()
    *chunks, last = outputs
    assert [len(chunk.data.samples) for chunk in chunks] == [2400, 2400, 1440]
    assert last.finished
    assert last.data == AudioEnd(num_samples=6240, audio_tokens=6)


async def test_chat_speaks_while_it_writes(deployment):
    pipeline = deployment.models[1].pipelines[1]
    orchestrator = AsyncChunkOrchestrator(pipeline.handles, pipeline.final_stage_ids, prewarm_fn)
    await orchestrator.start()
    text = " ".join(f"word{n}" for n in range(200))
    outputs = await collect(orchestrator, chat(text, VOICE, max_tokens=500))
    await orchestrator.shutdown()
    kinds = [type(output.data) for output in outputs]
    spoken = "".join(o.data.text for o in outputs if isinstance(o.data, TextChunk))
    assert spoken == f"You said: {text}"
    assert kinds.index(AudioChunk) < len(kinds) - kinds[::-1].index(TextChunk)
    assert [output.finished for output in outputs] == [False] * (len(outputs) - 1) + [True]
    assert {TextEnd, AudioEnd} <= set(kinds)


async def test_text_alone_starts_no_talker(deployment):
    pipeline = deployment.models[1].pipelines[1]
    orchestrator = AsyncChunkOrchestrator(pipeline.handles, pipeline.final_stage_ids, prewarm_fn)
    await orchestrator.start()
    outputs = await collect(orchestrator, chat("hi", max_tokens=2))
    await orchestrator.shutdown()
    assert outputs[-1].data == TextEnd("length", 2, 2)
    assert {output.stage_id for output in outputs} == {0}


async def test_the_same_stages_serve_the_form_without_async_chunks(deployment):
    pipeline = deployment.models[1].pipelines[1]
    request = chat("one two three", VOICE)

    def forward(stage_id, data):
        chunks = tuple(item for item in data if not isinstance(item, TextEnd))
        source = tuple(c for c in chunks if type(c).__name__.endswith("Chunk"))
        return StageInput(request.params[stage_id], source, has_next=False)

    first = StageInput(request.params[0], (), has_next=False)
    orchestrator = Orchestrator(pipeline.handles, pipeline.final_stage_ids, forward)
    await orchestrator.start()
    async with orchestrator.stream(first, last_stage=2) as outputs:
        in_sequence = [output async for output in outputs]
    await orchestrator.shutdown()
    together = AsyncChunkOrchestrator(pipeline.handles, pipeline.final_stage_ids, prewarm_fn)
    await together.start()
    at_once = await collect(together, request)
    await together.shutdown()
    assert np.array_equal(samples(in_sequence), samples(at_once))


def samples(outputs):
    return np.concatenate([o.data.samples for o in outputs if isinstance(o.data, AudioChunk)])


async def test_leaving_early_frees_every_stage(deployment):
    pipeline = deployment.models[1].pipelines[1]
    orchestrator = AsyncChunkOrchestrator(pipeline.handles, pipeline.final_stage_ids, prewarm_fn)
    await orchestrator.start()
    request = chat("word " * 500, VOICE, max_tokens=1000)
    async with orchestrator.stream(request, last_stage=2) as outputs:
        await anext(outputs)
    assert (await collect(orchestrator, chat("hi")))[-1].finished
    await orchestrator.shutdown()


class Broken:
    def load(self):
        raise FileNotFoundError("no weights")


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_a_stage_that_cannot_load_is_named_and_the_others_are_stopped(executor):
    on = Placement(executor=executor)
    fine = build_fake(on, on, on)
    deployment = Deployment([*fine.stages, make_replicas(on, "talker2", Broken)], [], [])
    with pytest.raises(StartError, match=r"talker2.*no weights"):
        await deployment.start()
    assert not any(worker.is_up for worker in deployment.workers)


async def test_a_record_has_the_work_of_each_stage_and_statistics_outlive_a_worker(deployment):
    speech = deployment.models[0].pipelines[0]
    talkers = deployment.stages[1].workers
    orchestrator = AsyncChunkOrchestrator(speech.handles, speech.final_stage_ids, prewarm_fn)
    await orchestrator.start()
    request = speech_request("hello there you", VOICE)
    async with orchestrator.stream(request) as outputs:
        (record,) = outputs.records
        async for _ in outputs:
            pass
    for stage in record.stages:
        assert stage.work.num_emitted == 3
        assert stage.submitted_at <= stage.work.busy[0][0] <= stage.finished_at
        assert stage.work.busy[-1][1] <= stage.finished_at
    before = num_steps(talkers)
    assert before >= 4  # three words and the end
    assert {(talker.num_open, talker.num_queued) for talker in talkers} == {(0, 0)}
    for talker in talkers:
        await talker.stop()
        await talker.start(30)
    await anyio.wait_all_tasks_blocked()  # the orchestrator has processed it
    assert num_steps(talkers) == before
    await collect(orchestrator, request)
    assert num_steps(talkers) >= before + 4
    await orchestrator.shutdown()
