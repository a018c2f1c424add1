"""The Ray executor: a stage worker in an actor, anywhere in a cluster, shared with other servers.

Ray places the actor, starts it again when it or its node dies, and tells where it is. The server
then talks to it over a socket of its own (`ray_control.py`), whose end shows that the actor died.
The server holds a lease on the actor (`ray_actor.py`), and tells it its edges (`connections.py`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

# Only Ray reads these, in part when it is imported. A cluster that is started here reports no usage
# statistics, and its workers have the same niceness as other processes. Ray's crash handler would
# take SIGTERM for a crash, and abort the process three seconds later.
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
from stages.runtime.connectors.remote.edge import RemoteEdge
from stages.runtime.executors.connections import Connection
from stages.runtime.executors.executor import Executor
from stages.runtime.executors.ray_actor import LEASE_S, ActorSpec, StageActor
from stages.runtime.executors.ray_control import Hello, RayControl, StopDone
from stages.runtime.worker.control import Ready
from stages.runtime.worker.edges import Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage
    from stages.runtime.executors.ray_actor import ActorLocation
    from stages.runtime.placement import Placement, RayCluster
    from stages.runtime.worker.control import Order

log = structlog.get_logger(__name__)

RENEW_S = LEASE_S / 4
ANSWER_S = 3.0  # how long an actor may take to answer before it is killed

_joining = threading.Lock()


def join_cluster(cluster: RayCluster) -> None:
    """Join the cluster, or start one. Does nothing where this process is part of one."""
    with _joining:
        if not ray.is_initialized():
            joined: Future[None] = Future()
            threading.Thread(target=_join_and_stay, args=(cluster, joined), daemon=True).start()
            joined.result()


def _join_and_stay(cluster: RayCluster, joined: Future[None]) -> None:
    """Join, in a thread that never ends: the kernel ends a cluster with the thread that started it.

    A pool's thread would not do. When the interpreter exits, pools end before Ray has shut down.
    """
    try:
        ray.init(
            cluster.address or "local",
            namespace=cluster.namespace,
            log_to_driver=False,
            configure_logging=False,
        )
    except BaseException as error:  # noqa: BLE001 - the thread that asked raises it
        joined.set_exception(error)
        return
    joined.set_result(None)
    threading.Event().wait()


def make_remote_edge(
    name: str, sender: Executor, receiver: Executor, max_chunks: int
) -> RemoteEdge:
    """A new edge between two workers, of which one or both are on Ray.

    All servers share an edge between two workers on Ray, by its name. Other edges belong to one
    server, and their names are unique.
    """
    on_ray = [each for each in (sender, receiver) if isinstance(each, RayExecutor)]
    if len(on_ray) == 1:
        name += f"@{secrets.token_hex(4)}"
    connection = Connection(name, sender, receiver, on_ray[0].find_ip)
    sender.connections.append(connection)
    receiver.connections.append(connection)
    return RemoteEdge(name, max_chunks)


@dataclass(slots=True)
class _Attachment:
    """One time that this server is attached to the actor, or tries to be."""

    server: str = field(default_factory=lambda: secrets.token_hex(8))
    actor: Any = None
    location: ActorLocation | None = None
    control: RayControl | None = None
    renew_timer: asyncio.TimerHandle | None = None


class RayExecutor(Executor):
    """Runs a worker in a Ray actor. The stage's class and arguments must be picklable."""

    kind = "ray"

    def __init__(
        self, placement: Placement, name: str, stage: Callable[..., Stage], *args: object
    ) -> None:
        super().__init__(name, stage, *args)
        self._placement = placement
        self._attachment: _Attachment | None = None
        self._num_others = 0  # requests of other servers, at the last renewal

    @property
    def node_id(self) -> str | None:
        """The node on which Ray placed the worker."""
        location = self._attachment.location if self._attachment is not None else None
        return location.node_id if location is not None else None

    @property
    def actor(self) -> Any:
        """Ray's handle of the actor. None while the server is not attached."""
        return self._attachment.actor if self._attachment is not None else None

    async def find_ip(self) -> str:
        """This machine's address as the cluster reaches it. StartError if there is no cluster."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, join_cluster, self._placement.ray)
        except (OSError, RuntimeError, ValueError) as error:
            raise StartError(f"{self.name} has no Ray cluster: {error}") from error
        ip: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        return ip

    def post(self, order: Order) -> None:
        """Send an order. Dropped while the worker is not connected."""
        if self._attachment is not None and self._attachment.control is not None:
            self._attachment.control.send(order)

    def kill(self) -> None:
        """Kill the actor. Ray starts it again for whoever holds a lease."""
        if self._attachment is not None and self._attachment.actor is not None:
            self._kill_actor(self._attachment)
        self._detach("killed")

    def _stop_loading(self) -> None:
        """Other servers may wait for the actor. It ends by itself if none attaches."""
        self._detach(None)

    async def _launch(self) -> None:
        self._attach()

    def _attach(self) -> None:
        attachment = self._attachment = _Attachment()
        positions = tuple(Position(each.final, each.max_unread) for each in self._positions)
        spec = ActorSpec(self.name, self._make_stage, positions)
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(None, self._ask_for_lease, spec, attachment)
        asked.add_done_callback(lambda _: self._on_asked(attachment, asked))

    def _on_asked(self, attachment: _Attachment, asked: asyncio.Future[Any]) -> None:
        if self._attachment is not attachment:
            return
        if error := asked.exception():
            self._detach(str(error))
        else:
            self._call_with(asked.result(), attachment, self._on_attached)

    def _ask_for_lease(self, spec: ActorSpec, attachment: _Attachment) -> Any:
        """Ask the actor for a lease. If there is no actor by this name, Ray places one."""
        placement = self._placement
        join_cluster(placement.ray)
        attachment.actor = (
            ray.remote(StageActor)
            .options(
                name=self.name,
                namespace=placement.ray.namespace,
                get_if_exists=True,
                lifetime="detached",
                max_restarts=-1,
                max_task_retries=-1,
                # On one machine all stages share all CPUs.
                num_cpus=placement.cpus if placement.ray.address else 0,
                num_gpus=placement.gpus,
                scheduling_strategy="SPREAD",
            )
            .remote(spec)
        )
        return attachment.actor.attach.remote(attachment.server, spec.shape)

    def _call_with(
        self, answer: Any, attachment: _Attachment, then: Callable[[_Attachment, Any], None]
    ) -> None:
        """Call `then` on the loop with Ray's answer, unless the server has detached by then."""
        loop = asyncio.get_running_loop()

        def on_loop() -> None:
            if self._attachment is attachment:
                try:
                    result = future.result()
                except (RayError, StartError) as error:
                    self._on_refused(error)
                else:
                    then(attachment, result)

        def on_answer(_: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(on_loop)

        future = answer.future()
        future.add_done_callback(on_answer)

    def _on_refused(self, error: Exception) -> None:
        cause = getattr(error, "cause", None) or error
        died = isinstance(error, ActorDiedError) and not error.actor_init_failed
        if died and self._attachment is not None and self._attachment.location is None:
            self._attach()  # its last server had just left: there will be a new actor
        elif died:
            self._detach("its actor is gone")
        else:
            self._detach(str(cause).strip().splitlines()[-1])

    def _on_attached(self, attachment: _Attachment, location: ActorLocation) -> None:
        attachment.location = location
        attachment.control = RayControl(location.address, self._on_message, self._on_lost)
        attachment.control.send(Hello(attachment.server, tuple(self._positions)))
        asyncio.get_running_loop().call_later(ANSWER_S, self._kill_if_not_ready, attachment)
        self._schedule_renewal(attachment)

    def _kill_if_not_ready(self, attachment: _Attachment) -> None:
        if self._attachment is attachment and not self.is_loaded:
            self.kill()

    def _on_lost(self) -> None:
        """The worker's end of the socket is gone or silent.

        If the actor died, Ray knows that and starts it again. If it does not answer Ray either, it
        is killed.
        """
        attachment = self._attachment
        assert attachment is not None
        self._detach("it cannot be reached")
        answer = attachment.actor.renew.options(max_task_retries=0).remote("").future()

        def kill_if_silent() -> None:
            if not answer.done():
                self._kill_actor(attachment)

        asyncio.get_running_loop().call_later(ANSWER_S, kill_if_silent)

    def _kill_actor(self, attachment: _Attachment) -> None:
        log.error("actor_silent", stage=self.name)
        ray.kill(attachment.actor, no_restart=False)

    def _schedule_renewal(self, attachment: _Attachment) -> None:
        loop = asyncio.get_running_loop()
        attachment.renew_timer = loop.call_later(RENEW_S, self._renew, attachment)

    def _renew(self, attachment: _Attachment) -> None:
        answer = attachment.actor.renew.options(max_task_retries=0).remote(attachment.server)
        self._call_with(answer, attachment, self._on_renewed)

    def _on_renewed(self, attachment: _Attachment, num_live: int | None) -> None:
        if num_live is None:
            self._detach("its lease ran out")
        else:
            self._set_num_others(max(0, num_live - (self.num_live - self._num_others)))
            self._schedule_renewal(attachment)

    def _set_num_others(self, num_others: int) -> None:
        """Requests of other servers count as live, so that new ones go to a less busy worker."""
        self.num_live += num_others - self._num_others
        self._num_others = num_others

    def _on_message(self, message: Any) -> None:
        match message:
            case Ready():
                self._on_ready(message)
            case StopDone():
                self._detach(None)
            case reports:
                self._on_reports(reports)

    def _detach(self, reason: str | None) -> None:
        """Give the lease back. For this server the worker has ended; `reason` as for `_on_end`."""
        attachment, self._attachment = self._attachment, None
        if attachment is None:
            return
        if attachment.renew_timer is not None:
            attachment.renew_timer.cancel()
        if attachment.control is not None:
            attachment.control.close()
        if attachment.actor is not None:
            attachment.actor.detach.options(max_task_retries=0).remote(attachment.server)
        self._set_num_others(0)
        self._on_end(reason)
