"""The models that are served, by id and by alias, and their life from loading to the end.

Loading runs beside the server: it answers that it is alive before it is ready. Stages and
orchestrators are started and stopped by one task. A start that fails is kept in `failure`, for
whoever runs the server to end it.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import structlog

from orchestrator import Admission, AsyncChunkOrchestrator, Patience, Supervisor
from server.errors import UnknownModelError
from server.exception_groups import ungrouped
from server.serving.capacity import PLACES, places_for
from server.serving.served import Served
from server.serving.voices import voices_of
from stages.contract.errors import StartError, UnavailableError
from stages.contract.pipeline import prewarm_fn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from server.config.settings import Settings
    from server.serving.served import ServedDeployment, ServedStage, ServedWorker
    from stages.contract.pipeline import Pipeline

log = structlog.get_logger(__name__)


class Service:
    """What the routes ask for models. `deploy` builds the deployment; it may take seconds."""

    def __init__(self, settings: Settings, deploy: Callable[[], ServedDeployment]) -> None:
        self.settings = settings
        self.created = int(time.time())
        self.settled = anyio.Event()
        self.failure: Exception | None = None
        self.admission = Admission(
            settings.max_running or PLACES, settings.max_waiting, settings.max_wait_s
        )
        self._deploy = deploy
        self._served: tuple[Served, ...] = ()
        self._orchestrators: list[AsyncChunkOrchestrator] = []
        self._deployment: ServedDeployment | None = None

    @property
    def ready(self) -> bool:
        """Whether every stage of every model has a worker that runs, and is known to."""
        up = self._deployment is not None and self._deployment.is_up
        return bool(self._served) and up and all(each.is_up for each in self._orchestrators)

    @property
    def stages(self) -> Sequence[ServedStage]:
        """The stages of all models; none before they are built."""
        return self._deployment.stages if self._deployment is not None else ()

    @property
    def models(self) -> tuple[Served, ...]:
        """Every model. Raises UnavailableError while they are loading."""
        if not self._served:
            raise UnavailableError("The models are still loading.")
        return self._served

    def model(self, name: str) -> Served:
        """A model by id or alias. Raises UnknownModelError, UnavailableError."""
        if self.models and (served := self.find(name)) is not None:
            return served
        raise UnknownModelError(name)

    def find(self, name: str) -> Served | None:
        """A model by id or alias, if it is there."""
        return next((served for served in self._served if name in served.names), None)

    @property
    def running_models(self) -> tuple[Served, ...]:
        """Every model that is up; none while they are loading."""
        return self._served

    @property
    def workers(self) -> tuple[ServedWorker, ...]:
        """What runs the stages; none before they are built."""
        return tuple(worker for stage in self.stages for worker in stage.workers)

    async def reload_voices(self) -> None:
        """Look again which voices there are. Raises UnavailableError while models are loading."""
        for served in self.models:
            if (find := served.pipeline.find_voices) is not None:
                voices = voices_of(await anyio.to_thread.run_sync(find), self.settings.voice)
                self._served = tuple(
                    replace(one, voices=voices) if one.pipeline is served.pipeline else one
                    for one in self._served
                )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load in the background, serve within the scope, stop everything at its end."""
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._live)
                yield
                tasks.cancel_scope.cancel()

    async def end_requests(self) -> None:
        """End every request that still runs, each with its error; nothing new is taken."""
        self._served = ()
        async with anyio.create_task_group() as tasks:
            for orchestrator in self._orchestrators:
                tasks.start_soon(orchestrator.shutdown)

    async def _live(self) -> None:
        async with AsyncExitStack() as stack:
            try:
                supervisor = await self._start(stack)
            except Exception as error:  # noqa: BLE001 - the supervisor: kept, and ends the server
                self.failure = error
                self.settled.set()
                await anyio.sleep_forever()
            self.settled.set()
            await supervisor.run()
            await anyio.sleep_forever()

    async def _start(self, stack: AsyncExitStack) -> Supervisor:
        deployment = self._deployment = await anyio.to_thread.run_sync(self._deploy)
        stack.push_async_callback(_shielded, deployment.stop)
        await anyio.lowlevel.checkpoint()  # told to stop meanwhile, it loads nothing
        await deployment.start(self.settings.start_s)
        self._check_voice(deployment.pipelines)
        patience = Patience(start_s=self.settings.start_s)
        supervisor = Supervisor(self.workers, patience)
        served = tuple([await self._serve(p, supervisor, stack) for p in deployment.pipelines])
        if self.settings.max_running is None:
            self.admission.max_running = await places_for(served)
        self._served = served
        log.debug("models_are_up", models=[one.pipeline.model_id for one in self._served])
        return supervisor

    def _check_voice(self, pipelines: tuple[Pipeline, ...]) -> None:
        """A default voice that no model has is a mistake. Raises StartError."""
        names = sorted({voice.name for pipeline in pipelines for voice in pipeline.voices})
        wished = self.settings.voice
        if wished and wished not in names:
            raise StartError(f"no such voice: {wished!r}; there are {', '.join(names)}")

    async def _serve(
        self, pipeline: Pipeline, supervisor: Supervisor, stack: AsyncExitStack
    ) -> Served:
        orchestrator = AsyncChunkOrchestrator(
            pipeline.handles,
            pipeline.final_stage_ids,
            prewarm_fn,
            on_silent=lambda stage_id: supervisor.suspect(
                pipeline.handles[stage_id].aborting_workers
            ),
            admission=self.admission,
        )
        await orchestrator.start()
        self._orchestrators.append(orchestrator)
        stack.push_async_callback(_shielded, orchestrator.shutdown)
        voices = voices_of(pipeline.voices, self.settings.voice)
        return Served(pipeline, orchestrator, voices, orchestrator.stats)


async def _shielded(stop: Callable[[], Awaitable[None]]) -> None:
    with anyio.CancelScope(shield=True):
        await stop()
