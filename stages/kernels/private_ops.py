"""Every operator of torch whose name is private, and a check of each against a public one.

Torch may change or drop these operators in any version. They are looked up once, when this module
is imported, so a call costs nothing more. Nothing is computed then: the fork server imports this
module, and a process that forks must not have started compute threads. The checks run when weights
are laid out, once per process. If an operator is missing or gives another result, its check warns
and says no, and the caller takes the public operator.
"""

from __future__ import annotations

import warnings
from ctypes import string_at
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    CopyEach = Callable[[Sequence[Tensor], Sequence[Tensor]], object]

_TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.02}  # in parts of the largest value


def _find(path: str) -> Any:
    """The operator at `path` below torch; None if this torch does not have it."""
    found: Any = torch
    try:
        for name in path.split("."):
            found = getattr(found, name)
    except AttributeError:
        return None
    return found


_HAS_ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
_has_fast_bfloat16 = _find("cpu._is_avx512_bf16_supported")
_onednn_takes_bfloat16 = _find("ops.mkldnn._is_mkldnn_bf16_supported")
_laid_out_address = _find("ops.mkldnn.data_ptr")
_laid_out_size = _find("ops.mkldnn._nbytes")

# Whether this CPU multiplies bfloat16 itself (AVX512-BF16).
CPU_MULTIPLIES_BFLOAT16 = _has_fast_bfloat16 is not None and bool(_has_fast_bfloat16())

# (weight [out, in]) -> the weight in oneDNN's layout.
reorder_linear = _find("ops.mkldnn._reorder_linear_weight")
# (x, laid-out weight, bias, "none", [], "") -> x @ weight.T + bias.
multiply_linear = _find("ops.mkldnn._linear_pointwise")

# (weight [out, in, 1, size], padding, stride, dilation, groups, image shape)
# -> the laid-out weight.
reorder_convolution = _find("ops.mkldnn._reorder_convolution_weight")
# (image, weight, bias, padding, stride, dilation, groups, "none", [], "") -> the convolved image.
convolve = _find("ops.mkldnn._convolution_pointwise.default")
# (image, plus, weight, bias, padding, stride, dilation, groups, "add", None, None, (), None):
# the convolved image + `plus`.
convolve_add = _find("ops.mkldnn._convolution_pointwise.binary")
# (plus, image, ...): the same, written over `plus`.
convolve_add_ = _find("ops.mkldnn._convolution_pointwise_.binary")

# (codes 0 to 15 as int32 [out, in], 1) -> the packed codes.
pack_int4 = _find("ops.aten._convert_weight_to_int4pack_for_cpu")
# (bfloat16 x, packed codes, group size, [groups, out, (scale, value of code 8)]) -> x @ weight.T.
multiply_int4 = _find("_weight_int4pack_mm_for_cpu")

# (targets, sources): copies each source into its target.
foreach_copy = _find("_foreach_copy_")


def laid_out_bytes(laid_out: Tensor) -> bytes:
    """The content of a tensor in oneDNN's layout."""
    return string_at(_laid_out_address(laid_out), _laid_out_size(laid_out))


@cache
def linear_works(dtype: torch.dtype) -> bool:
    """Whether `reorder_linear` and `multiply_linear` work on CPU tensors of this dtype."""
    return _onednn_takes(dtype) and _agree("oneDNN linear", dtype, _linear_results(dtype))


@cache
def convolution_works(dtype: torch.dtype) -> bool:
    """Whether the `convolve` operators and their layout work on CPU tensors of this dtype."""
    return _onednn_takes(dtype) and _agree("oneDNN convolution", dtype, _convolution_results(dtype))


@cache
def int4_works() -> bool:
    """Whether this CPU has the four-bit kernel, with `pack_int4` and `multiply_int4`."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    return _agree("int4 product", torch.bfloat16, _int4_results())


@cache
def find_copy_each() -> CopyEach:
    """A function that copies each source into its target, in one call where torch can."""
    if _agree("copy of several tensors", torch.float32, _copy_results()):
        copy_each: CopyEach = foreach_copy
        return copy_each
    return _copy_one_by_one


def _copy_one_by_one(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def _onednn_takes(dtype: torch.dtype) -> bool:
    if not _HAS_ONEDNN:
        return False
    if dtype == torch.bfloat16:
        return _onednn_takes_bfloat16 is not None and bool(_onednn_takes_bfloat16())
    return dtype == torch.float32


def _agree(name: str, dtype: torch.dtype, results: Iterable[tuple[Tensor, Tensor]]) -> bool:
    """Whether all pairs (private, public) are close. Warns if not, or if computing them fails."""
    try:
        for private, public in results:
            largest = public.abs().max()
            if (private - public).abs().max() > _TOLERANCES[dtype] * largest:
                raise ValueError("its results differ from the public operator's")
    except (RuntimeError, TypeError, ValueError) as error:  # None is not callable: TypeError
        reason = str(error).partition("\n")[0]
        warnings.warn(
            f"torch {torch.__version__}: the private operator for {name} is not used, speed may "
            f"be lower: {reason}",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    return True


def _values(dtype: torch.dtype, *shape: int) -> Tensor:
    """Numbers from -1 to 1 without a pattern; torch's random generator stays as it is."""
    count = torch.Size(shape).numel()
    return torch.arange(count).mul(12.9898).sin().view(shape).to(dtype)


def _linear_results(dtype: torch.dtype) -> Iterable[tuple[Tensor, Tensor]]:
    x, weight, bias = _values(dtype, 3, 32), _values(dtype, 48, 32), _values(dtype, 48)
    laid_out = reorder_linear(weight)
    for added in (None, bias):
        private = multiply_linear(x, laid_out, added, "none", [], "")
        public = functional.linear(
            x.float(), weight.float(), bias.float() if added is bias else None
        )
        yield private.float(), public


def _convolution_results(dtype: torch.dtype) -> Iterable[tuple[Tensor, Tensor]]:
    weight = _values(dtype, 16, 16, 1, 3).contiguous(memory_format=torch.channels_last)
    bias = _values(dtype, 16)
    image = _values(dtype, 1, 1, 20, 16).permute(0, 3, 1, 2)
    plus = _values(dtype, 1, 1, 16, 16).permute(0, 3, 1, 2)
    shape = ((0, 0), (1, 1), (1, 2), 1)
    laid_out = reorder_convolution(weight, *shape, image.shape)
    again = reorder_convolution(weight, *shape, image.shape)
    if laid_out_bytes(laid_out) != laid_out_bytes(again):
        raise ValueError("the layout of one weight is not the same every time")
    public = functional.conv2d(image.float(), weight.float(), bias.float(), dilation=(1, 2))
    how, add = (laid_out, bias, *shape), ("add", None, None, (), None)
    yield convolve(image, *how, "none", [], "").float(), public
    yield convolve_add(image, plus, *how, *add).float(), public + plus.float()
    changed = plus.clone()
    convolve_add_(changed, image, *how, *add)
    yield changed.float(), public + plus.float()


def _int4_results() -> Iterable[tuple[Tensor, Tensor]]:
    x, codes = _values(torch.bfloat16, 2, 64), torch.arange(32 * 64).mul(7).remainder(16)
    codes = codes.view(32, 64)
    scales_middles = torch.tensor([0.25, 0.5]).expand(2, 32, 2).contiguous()
    packed = pack_int4(codes.int(), 1)
    private = multiply_int4(x, packed, 32, scales_middles.bfloat16())
    yield private.float(), x.float() @ (0.25 * (codes - 8) + 0.5).T


def _copy_results() -> Iterable[tuple[Tensor, Tensor]]:
    sources = [_values(torch.float32, 2), _values(torch.float32, 3)]
    targets = [torch.zeros(2), torch.zeros(3)]
    foreach_copy(targets, sources)
    yield from zip(targets, sources, strict=True)
