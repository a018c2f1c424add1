"""A message as bytes: a small pickled header, and the arrays in it as they lie in memory.

Pickle's out-of-band buffers (PEP 574) keep array data out of the pickle. Torch tensors take part
through `reducer_override`. Only for processes that this server started itself: whoever can send a
pickle can run code.
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


def _tensor(buffer: Any, dtype_name: str, shape: tuple[int, ...]) -> Any:
    import torch

    dtype = getattr(torch, dtype_name.removeprefix("torch."))
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(buffer, dtype=dtype).reshape(shape)


def encode(message: Any) -> list[ReadableBuffer]:
    """The message as parts, which `decode` takes joined. Arrays are not copied.

    The first part has the size of the pickled header, the number of arrays and their sizes, as
    uint32; the header and the arrays follow.
    """
    buffers: list[pickle.PickleBuffer] = []
    header = io.BytesIO()
    _Pickler(header, protocol=5, buffer_callback=buffers.append).dump(message)
    arrays = [buffer.raw() for buffer in buffers]
    sizes = (len(array) for array in arrays)
    table = struct.pack(f"<{2 + len(arrays)}I", header.tell(), len(arrays), *sizes)
    return [table, header.getbuffer(), *arrays]


def decode(data: bytearray) -> Any:
    """The message of the joined parts. Its arrays lie in `data`, and may be written to."""
    view = memoryview(data)
    header_size, num_arrays = struct.unpack_from("<2I", view)
    sizes = struct.unpack_from(f"<{num_arrays}I", view, 2 * _U32.size)
    begin = (2 + num_arrays) * _U32.size
    header = view[begin : begin + header_size]
    begin += header_size
    arrays = []
    for size in sizes:
        arrays.append(view[begin : begin + size])
        begin += size
    return pickle.loads(header, buffers=arrays)
