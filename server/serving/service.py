"""The models that are served, by id and by alias, and their life from loading to the end.

Models load while the server already answers: it is alive before it is ready. One task starts and
stops stages and orchestrators. If the start fails, `failure` has the error, and whoever runs the
server must end it.
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
from server.serving.capacity import choose_max_running
from server.serving.names import assign_aliases
from server.serving.served import ServedModel, ServedPipeline
from server.serving.voices import voices_of
from stages.contract.errors import StartError, UnavailableError
from stages.contract.model import DEFAULT_MAX_RUNNING
from stages.contract.pipeline import prewarm_fn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from server.config.settings import Settings
    from server.serving.served import ServedDeployment, ServedStage, ServedWorker
    from stages.contract.model import ModelSpec
    from stages.contract.pipeline import Pipeline

log = structlog.get_logger(__name__)


class Service:
    """Gives the routes their models.

    `deploy` builds the deployment, in a thread, as it may take seconds. `settled` is set when the
    start has succeeded or failed.
    """

    def __init__(self, settings: Settings, deploy: Callable[[], ServedDeployment]) -> None:
        self.settings = settings
        self.created = int(time.time())
        self.settled = anyio.Event()
        self.failure: Exception | None = None
        self.admission = Admission(
            settings.max_running or DEFAULT_MAX_RUNNING, settings.max_waiting, settings.max_wait_s
        )
        self._deploy = deploy
        self._served: tuple[ServedModel, ...] = ()
        self._orchestrators: list[AsyncChunkOrchestrator] = []
        self._deployment: ServedDeployment | None = None

    @property
    def ready(self) -> bool:
        """Whether every stage of every model has a running worker that its orchestrator knows."""
        up = self._deployment is not None and self._deployment.is_up
        return bool(self._served) and up and all(each.is_up for each in self._orchestrators)

    @property
    def stages(self) -> Sequence[ServedStage]:
        """The stages of all models; empty until they are built."""
        return self._deployment.stages if self._deployment is not None else ()

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """All models. Raises UnavailableError while they are loading."""
        if not self._served:
            raise UnavailableError("The models are still loading.")
        return self._served

    def model(self, name: str) -> ServedModel:
        """A model by id or alias. Raises UnknownModelError, or UnavailableError while loading."""
        if self.models and (served := self.find(name)) is not None:
            return served
        raise UnknownModelError(name)

    def find(self, name: str) -> ServedModel | None:
        """A model by id or alias; None if there is none."""
        return next((served for served in self._served if name in served.names), None)

    @property
    def running_models(self) -> tuple[ServedModel, ...]:
        """All models that are up; empty while they are loading."""
        return self._served

    @property
    def workers(self) -> tuple[ServedWorker, ...]:
        """The workers of all stages; empty until they are built."""
        return tuple(worker for stage in self.stages for worker in stage.workers)

    async def reload_voices(self) -> None:
        """Read the lists of voices again. Raises UnavailableError while models are loading."""
        for served in self.models:
            if (find := served.model.find_voices) is not None:
                voices = voices_of(await anyio.to_thread.run_sync(find), self.settings.voice)
                self._served = tuple(
                    replace(one, voices=voices) if one.model is served.model else one
                    for one in self._served
                )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the models in the background; stop everything at the end of the `async with`."""
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._run)
                yield
                tasks.cancel_scope.cancel()

    async def abort_requests(self) -> None:
        """Abort all running requests, each with an error, and accept no new ones."""
        self._served = ()
        async with anyio.create_task_group() as tasks:
            for orchestrator in self._orchestrators:
                tasks.start_soon(orchestrator.shutdown)

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            try:
                supervisor = await self._start(stack)
            except Exception as error:  # noqa: BLE001 - outermost frame: kept in `failure`, which ends the server
                self.failure = error
                self.settled.set()
                await anyio.sleep_forever()
            self.settled.set()
            await supervisor.run()
            await anyio.sleep_forever()

    async def _start(self, stack: AsyncExitStack) -> Supervisor:
        deployment = self._deployment = await anyio.to_thread.run_sync(self._deploy)
        stack.push_async_callback(_shielded, deployment.stop)
        await anyio.lowlevel.checkpoint()  # if it was cancelled meanwhile, load nothing
        aliases = assign_aliases(deployment.models, self.settings.aliases)
        self._check_voice(deployment.models)
        await deployment.start(self.settings.start_s)
        patience = Patience(start_s=self.settings.start_s)
        supervisor = Supervisor(self.workers, patience)
        served = tuple(
            [
                await self._serve(model, aliases[model.model_id], supervisor, stack)
                for model in deployment.models
            ]
        )
        if self.settings.max_running is None:
            self.admission.max_running = await choose_max_running(served)
        self._served = served
        log.debug("models_are_up", models=[one.model_id for one in self._served])
        return supervisor

    def _check_voice(self, models: Sequence[ModelSpec]) -> None:
        """Raise StartError if no model has the default voice of the settings."""
        names = sorted({voice.name for model in models for voice in model.voices})
        voice = self.settings.voice
        if voice and voice not in names:
            raise StartError(f"no such voice: {voice!r}; there are {', '.join(names)}")

    async def _serve(
        self,
        model: ModelSpec,
        aliases: tuple[str, ...],
        supervisor: Supervisor,
        stack: AsyncExitStack,
    ) -> ServedModel:
        pipelines = [await self._run_pipeline(each, supervisor, stack) for each in model.pipelines]
        voices = voices_of(model.voices, self.settings.voice)
        return ServedModel(model, aliases, tuple(pipelines), voices)

    async def _run_pipeline(
        self, pipeline: Pipeline, supervisor: Supervisor, stack: AsyncExitStack
    ) -> ServedPipeline:
        orchestrator = AsyncChunkOrchestrator(
            pipeline.handles,
            pipeline.final_stage_ids,
            prewarm_fn,
            on_silent=lambda stage_id: supervisor.suspect(
                pipeline.handles[stage_id].unacknowledged
            ),
            admission=self.admission,
            roles=pipeline.roles,
        )
        await orchestrator.start()
        self._orchestrators.append(orchestrator)
        stack.push_async_callback(_shielded, orchestrator.shutdown)
        return ServedPipeline(pipeline, orchestrator, orchestrator.stats)


async def _shielded(stop: Callable[[], Awaitable[None]]) -> None:
    with anyio.CancelScope(shield=True):
        await stop()
