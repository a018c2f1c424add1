"""A code2wav stage as a worker drives it, and a clock for it."""

from stages.contract.messages import Code2WavParams


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


class Bench:
    """A stage as a worker drives it: each of `requests` is fed what it wants, then a step."""

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
        """The ids of those that sounded."""
        credit = {rid: 1 for rid in self.waiting if self.stage.ready(rid)}
        sounded = []
        for emit in self.stage.step(credit):
            if emit.end is None:
                sounded.append(emit.request_id)
                self.audio[emit.request_id].append(emit.chunk)
            else:
                self.ends[emit.request_id] = emit.end
                del self.waiting[emit.request_id]
                self.stage.close(emit.request_id)
        return sounded

    def run(self):
        while self.waiting:
            self.feed()
            self.step()
