"""A message as bytes: a small pickled header, and the arrays in it as they lie in memory.

Pickle's out-of-band buffers (PEP 574) keep array data out of the pickle; torch tensors take part
through `reducer_override`. Only for processes that this server started itself.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_U32 = struct.Struct("<I")


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or type(obj) is not torch.Tensor:
            return NotImplemented
        flat = obj.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return _tensor, (pickle.PickleBuffer(flat.numpy()), str(obj.dtype), tuple(obj.shape))


def _tensor(buffer: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    kind = getattr(torch, dtype.removeprefix("torch."))
    if 0 in shape:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(buffer, dtype=kind).reshape(shape)


def encode(message: Any) -> list[ReadableBuffer]:
    """The parts of the message; joined, they are what `decode` takes. Arrays are not copied."""
    buffers: list[pickle.PickleBuffer] = []
    header = io.BytesIO()
    _Pickler(header, protocol=5, buffer_callback=buffers.append).dump(message)
    raw = [buffer.raw() for buffer in buffers]
    sizes = struct.pack(f"<{2 + len(raw)}I", header.tell(), len(raw), *(len(r) for r in raw))
    return [sizes, header.getbuffer(), *raw]


def decode(data: bytearray) -> Any:
    """The message of the joined parts. Its arrays lie in `data` and may be written to."""
    view = memoryview(data)
    header_size, count = struct.unpack_from("<2I", view)
    sizes = struct.unpack_from(f"<{count}I", view, 2 * _U32.size)
    at = (2 + count) * _U32.size
    header = view[at : at + header_size]
    at += header_size
    buffers = []
    for size in sizes:
        buffers.append(view[at : at + size])
        at += size
    return pickle.loads(header, buffers=buffers)
