"""The fake pipelines on Ray: all that they do in threads, with and without replicas."""

import pytest

from stages.errors import StartError
from stages.pipelines.deployment import Deployment
from stages.pipelines.fake import build_fake
from stages.pipelines.staff import staff
from tests.ray.conftest import placement
from tests.stages.pipelines.test_fake import (  # noqa: F401 - the tests themselves
    Broken,
    test_chat_speaks_while_it_writes,
    test_leaving_early_frees_every_stage,
    test_speech_gives_its_tones_and_then_its_end,
    test_text_alone_starts_no_talker,
    test_the_same_stages_serve_the_form_without_async_chunks,
)

pytestmark = pytest.mark.ray


@pytest.fixture(params=[1, 2], scope="module")
async def deployment(request, cluster):
    on = placement(cluster, f"pipelines-{request.param}", request.param)
    deployment = build_fake(on, on, on)
    await deployment.start(60)
    yield deployment
    await deployment.stop()


async def test_a_stage_that_cannot_load_is_named_and_the_others_are_stopped(placed):
    on = placed()
    fine = build_fake(on, on, on)
    deployment = Deployment([*fine.stages, staff(on, "talker2", Broken)], [], [])
    with pytest.raises(StartError, match=r"talker2.*no weights"):
        await deployment.start(60)
    assert not any(worker.is_up for worker in deployment.workers)
