"""Runs the stage as a worker does, with speeches for it. Also stand-ins for CUDA graphs."""

import torch

from stages.contract.errors import RequestError
from stages.contract.messages import TextChunk
from stages.models.qwen3_tts.settings import QwenSettings
from tests.stages.credit import CREDIT
from tests.stages.models.parameters import talker_params

TEXTS = [
    "The other thing is in the house.",
    "Nothing.",
    "In the other house, there is the thing; and the other thing, too.",
    "So it is.",
    "\u4f60\u597d\uff0c the house.",
    "Here and there, and in the end there is nothing at all to be found in here.",
    "Who?",
    "The thing, then.",
]
VOICES = ["ryan", "vivian", "eric"]


def params(voice="ryan", seed=1, **changes):
    return talker_params(QwenSettings, voice, seed, **changes)


def eight_speeches():
    """Eight different speeches, (params, pieces of text) by id."""
    return {
        f"r{i}": (params(VOICES[i % 3], seed=i, language="english" if i % 2 else ""), [text])
        for i, text in enumerate(TEXTS)
    }


class Driver:
    """Runs `speeches`, (params, pieces of text) by id. `frames` collects the codes of each."""

    def __init__(self, stage, speeches, max_frames=60):
        self.stage = stage
        self.frames = {request_id: [] for request_id in speeches}
        self.chunks = {request_id: [] for request_id in speeches}
        self.ends = {}
        self.errors = {}
        self.num_steps = 0
        self._max_frames = max_frames
        self._texts = {}
        for request_id, (params, pieces) in speeches.items():
            stage.open(request_id, params)
            self._texts[request_id] = [*pieces, None]

    def run(self, turns=10_000):
        """Run until all have ended or have `max_frames`, or no request is ready any more."""
        for _ in range(turns):
            self._feed()
            ready = [rid for rid in self._texts if self.stage.ready(rid, CREDIT)]
            if ready:
                self._step(dict.fromkeys(ready, CREDIT))
            elif not any(self._texts.values()):
                return self
        raise AssertionError("the requests do not end")

    def _feed(self):
        """Feed one piece of text to each request."""
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
                    if emit.chunk.audible:
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


class RecordingCapture:
    """In place of CUDA graphs, on a CPU: records operations, and replays them without the Python.

    A replay runs the same operations on the same memory.
    """

    def __init__(self):
        self.num_captures = 0

    def __call__(self, work):
        self.num_captures += 1
        with _OperationRecorder() as recorder:
            work()
        return recorder.replay


# Operations that break a capture and make a step wait: copies of numbers to the host, and the
# assignment of one number, which copies it from the host.
_SYNCHRONISES = (
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::is_nonzero",
    "aten::equal",
    "aten::lift_fresh",
)


class NoWaiting(torch.utils._python_dispatch.TorchDispatchMode):
    """Fails if an operation would wait for the device on a GPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split(".")[0]
        assert name not in _SYNCHRONISES, f"{name} waits for the device"
        return func(*args, **(kwargs or {}))


class _OperationRecorder(NoWaiting):
    def __init__(self):
        super().__init__()
        self._operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self._operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self):
        """Run the recorded operations again."""
        for func, args, kwargs, result in self._operations:
            again = func(*args, **kwargs)
            for old, new in zip(_tensors(result), _tensors(again), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)


def _tensors(result):
    results = result if isinstance(result, tuple | list) else [result]
    return [each for each in results if isinstance(each, torch.Tensor)]
