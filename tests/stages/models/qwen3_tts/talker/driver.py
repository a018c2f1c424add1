"""Runs the stage as a worker does: feeds what is wanted, steps what is ready, closes at the end."""

import torch

from stages.contract.errors import RequestError
from stages.contract.messages import TextChunk


class Driver:
    """`speeches` are (params, pieces of text) by id; `frames` collects each one's codes."""

    def __init__(self, stage, speeches, max_frames=60, credit=8):
        self.stage = stage
        self.frames = {request_id: [] for request_id in speeches}
        self.chunks = {request_id: [] for request_id in speeches}
        self.ends = {}
        self.errors = {}
        self.num_steps = 0
        self._max_frames = max_frames
        self._credit = credit
        self._texts = {}
        for request_id, (params, pieces) in speeches.items():
            stage.open(request_id, params)
            self._texts[request_id] = [*pieces, None]

    def run(self, turns=10_000):
        """Until all have ended, or have `max_frames`, or nothing is ready any more."""
        for _ in range(turns):
            self._feed()
            ready = [rid for rid in self._texts if self.stage.ready(rid)]
            if ready:
                self._step(dict.fromkeys(ready, self._credit))
            elif not any(self._texts.values()):
                return self
        raise AssertionError("it does not end")

    def _feed(self):
        """One piece each."""
        for request_id, pieces in self._texts.items():
            if pieces and pieces[0] is None:
                self.stage.end_input(request_id)
                pieces.pop(0)
            elif pieces and self.stage.wants_chunk(request_id):
                self.stage.feed(request_id, TextChunk(pieces.pop(0)))

    def _step(self, credit):
        self.num_steps += 1
        try:
            for emit in self.stage.step(credit):
                if emit.chunk is not None:
                    self.chunks[emit.request_id].append(emit.chunk)
                    if emit.chunk.heard:
                        self.frames[emit.request_id] += emit.chunk.codes.tolist()
                if emit.end is not None:
                    self.ends[emit.request_id] = emit.end
                    self.close(emit.request_id)
        except RequestError as error:
            self.errors[error.request_id] = error
            self.close(error.request_id)
        for request_id in [r for r in self._texts if len(self.frames[r]) >= self._max_frames]:
            self.close(request_id)

    def close(self, request_id):
        del self._texts[request_id]
        self.stage.close(request_id)


class Recording:
    """In the place of a CUDA graph, on a CPU: the operations and the memory that they read and
    write are kept, and done again without the Python that called them."""

    def __init__(self):
        self.num_captures = 0

    def __call__(self, work):
        self.num_captures += 1
        with _Recorder() as recorder:
            work()
        return recorder.replay


# What a capture on a GPU does not survive, and a step need not wait for: numbers brought to the
# host, and one number assigned, which is brought from it.
_SYNCHRONISES = (
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::is_nonzero",
    "aten::equal",
    "aten::lift_fresh",
)


class NoWaiting(torch.utils._python_dispatch.TorchDispatchMode):
    """Fails for an operation that would wait on a GPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split(".")[0]
        assert name not in _SYNCHRONISES, f"{name} waits for the device"
        return func(*args, **(kwargs or {}))


class _Recorder(NoWaiting):
    def __init__(self):
        super().__init__()
        self._operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self._operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self):
        """The same operations on the same memory."""
        for func, args, kwargs, result in self._operations:
            again = func(*args, **kwargs)
            for old, new in zip(_tensors(result), _tensors(again), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)


def _tensors(result):
    results = result if isinstance(result, tuple | list) else [result]
    return [one for one in results if isinstance(one, torch.Tensor)]
