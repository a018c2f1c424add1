"""Drives a code2wav stage as a worker does. Also a clock, random codes, and what they decode to."""

import numpy as np
import torch

from stages.contract.messages import Code2WavParams
from tests.stages.credit import CREDIT

CODEBOOK_SIZE = 256
NUM_CODES = 6  # of a frame


def random_codes(seed, num_frames):
    """int64 [num_frames, NUM_CODES]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, CODEBOOK_SIZE, (num_frames, NUM_CODES), generator=generator)


def decoded_pcm(decoder, codes):
    """All frames decoded in one call, as int16 samples."""
    samples = decoder.decode(codes[None], decoder.new_state())[0]
    return np.rint(samples.numpy() * 32767).astype(np.int16)


class Clock:
    """A clock that a test sets by hand."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


class StageDriver:
    """Feeds each request the chunks that the stage wants, then runs a step."""

    def __init__(self, stage):
        self.stage = stage
        self.waiting = {}
        self.audio = {}
        self.ends = {}

    def open(self, request_id, chunks):
        self.stage.open(request_id, Code2WavParams("ryan"))
        self.waiting[request_id] = [*chunks, None]
        self.audio[request_id] = []

    def feed(self):
        for request_id, waiting in self.waiting.items():
            while waiting and self.stage.wants_chunk(request_id):
                if (chunk := waiting.pop(0)) is None:
                    self.stage.end_input(request_id)
                else:
                    self.stage.feed(request_id, chunk)

    def step(self):
        """Run a step with all requests that are ready. Returns the ids of those that got audio."""
        credit = {rid: CREDIT for rid in self.waiting if self.stage.ready(rid, CREDIT)}
        emitted = []
        for emit in self.stage.step(credit):
            if emit.end is None:
                emitted.append(emit.request_id)
                self.audio[emit.request_id].append(emit.chunk)
            else:
                self.ends[emit.request_id] = emit.end
                del self.waiting[emit.request_id]
                self.stage.close(emit.request_id)
        return emitted

    def run(self):
        """Feed and step until every request has ended."""
        while self.waiting:
            self.feed()
            self.step()
