"""Stages that address their chunks: each is for the client or for the next stage, not for both."""

from collections import deque
from dataclasses import replace

from stages.contract.messages import TextChunk, TextEnd, To
from stages.contract.stage import Emit
from stages.models.fake.stages import FakeThinker


class SplitThinker(FakeThinker):
    """Writes each word for the client as it is, and for the next stage in capitals.

    One of them can be ahead of the other by as many words as its credit allows.
    """

    def __init__(self):
        super().__init__()
        self._ends = {}
        self._for_client = {}
        self._for_next = {}

    def open(self, request_id, params):
        super().open(request_id, params)
        request = self._requests[request_id]
        words = list(request.words)[: params.max_tokens]
        reason = "stop" if len(words) == len(request.words) else "length"
        self._ends[request_id] = TextEnd(reason, 1, len(words))
        chunks = [TextChunk(word if n == 0 else f" {word}", 1) for n, word in enumerate(words)]
        self._for_client[request_id] = deque(chunks)
        self._for_next[request_id] = deque(replace(c, text=c.text.upper()) for c in chunks)

    def ready(self, request_id, credit):
        client, following = self._for_client[request_id], self._for_next[request_id]
        if not client and not following:
            return True
        return bool((client and credit.client > 0) or (following and credit.next > 0))

    def step(self, credit):
        for request_id, left in credit.items():
            client, following = self._for_client[request_id], self._for_next[request_id]
            if not client and not following:
                yield Emit(request_id, end=self._ends[request_id])
            if client and left.client > 0:
                yield Emit(request_id, client.popleft(), to=To.CLIENT)
            if following and left.next > 0:
                yield Emit(request_id, following.popleft(), to=To.NEXT)

    def close(self, request_id):
        super().close(request_id)
        del self._ends[request_id], self._for_client[request_id], self._for_next[request_id]
