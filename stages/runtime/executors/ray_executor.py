"""The Ray executor: a stage worker in an actor, somewhere in a cluster, shared with other servers.

Ray places the actor, starts it again when it or its node dies, and tells where it is. The server
then talks to it over a line of its own (`line.py`), whose end is how it learns of a death; it
holds a lease on the actor (`actor.py`), and tells it of its edges (`links.py`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

# Read by Ray alone, in part as it is imported. A cluster that is started here reports nothing to
# anybody, and its workers are not nicer than other processes. Ray's handler of crashes would take
# SIGTERM for one, and abort the process three seconds later.
os.environ.update(  # noqa: TID251
    {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",
    }
    | os.environ  # noqa: TID251
)

import ray
import structlog
from ray.exceptions import ActorDiedError, RayError

from stages.contract.errors import StartError
from stages.runtime.connectors.remote import RemoteEdge
from stages.runtime.executors.connections import Connection
from stages.runtime.executors.executor import Executor
from stages.runtime.executors.ray_actor import LEASE_S, ActorSpec, StageActor
from stages.runtime.executors.ray_control import Hello, Left, RayControl
from stages.runtime.worker.control import Ready
from stages.runtime.worker.edges import Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage
    from stages.runtime.executors.ray_actor import Where
    from stages.runtime.placement import Placement, RayCluster
    from stages.runtime.worker.control import Order

log = structlog.get_logger(__name__)

RENEW_S = LEASE_S / 4
ANSWER_S = 3.0  # how long an actor may take to answer before it is ended

_joining = threading.Lock()


def join(cluster: RayCluster) -> None:
    """Be part of the cluster, or start one. Does nothing where this process is part of one."""
    with _joining:
        if not ray.is_initialized():
            joined: Future[None] = Future()
            threading.Thread(target=_stay, args=(cluster, joined), daemon=True).start()
            joined.result()


def _stay(cluster: RayCluster, joined: Future[None]) -> None:
    """Join, in a thread that never ends: with the one that started a cluster, the kernel ends it.

    Threads of a pool end before Ray does in order what it has to, as the interpreter exits.
    """
    try:
        ray.init(
            cluster.address or "local",
            namespace=cluster.namespace,
            log_to_driver=False,
            configure_logging=False,
        )
    except BaseException as error:  # noqa: BLE001 - for who asked
        joined.set_exception(error)
        return
    joined.set_result(None)
    threading.Event().wait()


def link(name: str, sender: Executor, receiver: Executor, max_chunks: int) -> RemoteEdge:
    """A new edge between two workers of which one or both are on Ray.

    Between two on Ray all servers share it and name it the same; others are one server's own.
    """
    on_ray = [each for each in (sender, receiver) if isinstance(each, RayExecutor)]
    if len(on_ray) == 1:
        name += f"@{secrets.token_hex(4)}"
    new = Connection(name, sender, receiver, on_ray[0].find_ip)
    sender.links.append(new)
    receiver.links.append(new)
    return RemoteEdge(name, max_chunks)


@dataclass(slots=True)
class _Attempt:
    """One time that this server attached to the actor, or tries to."""

    server: str = field(default_factory=lambda: secrets.token_hex(8))
    actor: Any = None
    where: Where | None = None
    line: RayControl | None = None
    timer: asyncio.TimerHandle | None = None


class RayExecutor(Executor):
    """See Executor; the stage's class and arguments must be picklable."""

    kind = "ray"

    def __init__(
        self, placement: Placement, name: str, stage: Callable[..., Stage], *args: object
    ) -> None:
        super().__init__(name, stage, *args)
        self._placement = placement
        self._attempt: _Attempt | None = None
        self._others = 0  # requests of other servers, as was heard last

    @property
    def node_id(self) -> str | None:
        """The node that Ray placed it on."""
        where = self._attempt.where if self._attempt is not None else None
        return where.node_id if where is not None else None

    async def find_ip(self) -> str:
        """This machine's address as the cluster reaches it. StartError where there is none."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, join, self._placement.ray)
        except (OSError, RuntimeError, ValueError) as error:
            raise StartError(f"{self.name} has no cluster: {error}") from error
        ip: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        return ip

    def post(self, order: Order) -> None:
        """See Executor."""
        if self._attempt is not None and self._attempt.line is not None:
            self._attempt.line.send(order)

    def kill(self) -> None:
        """See Executor. Ray starts the actor again, for whoever holds a lease."""
        if self._attempt is not None and self._attempt.actor is not None:
            self._end(self._attempt)
        self._part("killed")

    def _stop_loading(self) -> None:
        """Others may wait for it: it ends by itself if nobody attaches."""
        self._part(None)

    async def _launch(self) -> None:
        self._begin()

    def _begin(self) -> None:
        attempt = self._attempt = _Attempt()
        ports = tuple(Position(each.final, each.max_unread) for each in self._ports)
        spec = ActorSpec(self.name, self._make_stage, ports)
        asked = asyncio.get_running_loop().run_in_executor(None, self._ask_for, spec, attempt)
        asked.add_done_callback(lambda _: self._on_asked(attempt, asked))

    def _on_asked(self, attempt: _Attempt, asked: asyncio.Future[Any]) -> None:
        if self._attempt is not attempt:
            return
        if error := asked.exception():
            self._part(str(error))
        else:
            self._when(asked.result(), attempt, self._on_attached)

    def _ask_for(self, spec: ActorSpec, attempt: _Attempt) -> Any:
        """The actor, there already or to be placed, is asked for a lease."""
        on = self._placement
        join(on.ray)
        attempt.actor = (
            ray.remote(StageActor)
            .options(
                name=self.name,
                namespace=on.ray.namespace,
                get_if_exists=True,
                lifetime="detached",
                max_restarts=-1,
                max_task_retries=-1,
                num_cpus=on.cpus if on.ray.address else 0,  # on one machine all share all
                num_gpus=on.gpus,
                scheduling_strategy="SPREAD",
            )
            .remote(spec)
        )
        return attempt.actor.attach.remote(attempt.server, spec.shape)

    def _when(self, answer: Any, attempt: _Attempt, then: Callable[[_Attempt, Any], None]) -> None:
        """Call `then` on the loop with Ray's answer, unless the attempt is over by then."""
        loop = asyncio.get_running_loop()

        def on_loop() -> None:
            if self._attempt is attempt:
                try:
                    result = future.result()
                except (RayError, StartError) as error:
                    self._on_refused(error)
                else:
                    then(attempt, result)

        def on_answer(_: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(on_loop)

        future = answer.future()
        future.add_done_callback(on_answer)

    def _on_refused(self, error: Exception) -> None:
        cause = getattr(error, "cause", None) or error
        died = isinstance(error, ActorDiedError) and not error.actor_init_failed
        if died and self._attempt is not None and self._attempt.where is None:
            self._begin()  # its last server had just left: there will be another
        elif died:
            self._part("its actor is gone")
        else:
            self._part(str(cause).strip().splitlines()[-1])

    def _on_attached(self, attempt: _Attempt, where: Where) -> None:
        attempt.where = where
        attempt.line = RayControl(where.line, self._on_message, self._on_lost)
        attempt.line.send(Hello(attempt.server, tuple(self._ports)))
        asyncio.get_running_loop().call_later(ANSWER_S, self._expect_ready, attempt)
        self._renew_later(attempt)

    def _expect_ready(self, attempt: _Attempt) -> None:
        if self._attempt is attempt and not self.is_loaded:
            self.kill()

    def _on_lost(self) -> None:
        """The line's other end is gone or silent. Dead, Ray knows; if not, it is to be ended."""
        attempt = self._attempt
        assert attempt is not None
        self._part("it is out of reach")
        alive = attempt.actor.renew.options(max_task_retries=0).remote("").future()

        def judge() -> None:
            if not alive.done():
                self._end(attempt)

        asyncio.get_running_loop().call_later(ANSWER_S, judge)

    def _end(self, attempt: _Attempt) -> None:
        log.error("actor_silent", stage=self.name)
        ray.kill(attempt.actor, no_restart=False)

    def _renew_later(self, attempt: _Attempt) -> None:
        loop = asyncio.get_running_loop()
        attempt.timer = loop.call_later(RENEW_S, self._renew, attempt)

    def _renew(self, attempt: _Attempt) -> None:
        answer = attempt.actor.renew.options(max_task_retries=0).remote(attempt.server)
        self._when(answer, attempt, self._on_renewed)

    def _on_renewed(self, attempt: _Attempt, num_live: int | None) -> None:
        if num_live is None:
            self._part("its lease ran out")
        else:
            self._count_others(max(0, num_live - (self.num_live - self._others)))
            self._renew_later(attempt)

    def _count_others(self, others: int) -> None:
        """So many requests of other servers are bound to the worker; for the choice they count."""
        self.num_live += others - self._others
        self._others = others

    def _on_message(self, message: Any) -> None:
        match message:
            case Ready():
                self._on_ready(message)
            case Left():
                self._part(None)
            case reports:
                self._on_reports(reports)

    def _part(self, reason: str | None) -> None:
        """The worker is gone for this server, which holds no lease on it any more."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        if attempt.timer is not None:
            attempt.timer.cancel()
        if attempt.line is not None:
            attempt.line.close()
        if attempt.actor is not None:
            attempt.actor.detach.options(max_task_retries=0).remote(attempt.server)
        self._count_others(0)
        self._on_end(reason)
