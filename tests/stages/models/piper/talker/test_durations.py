"""The splines of the duration predictor change nothing at their bound or beyond it."""

import pytest
import torch

from stages.models.piper.durations import DurationPredictor
from stages.models.piper.vits import phrase_noise

pytestmark = pytest.mark.model


@pytest.mark.parametrize("value", [-30.0, -5.0, -4.99999, 4.99999, 5.0, 30.0])
def test_noise_at_the_bound_and_beyond_is_not_moved(parameters, value):
    predictor = DurationPredictor(parameters)
    hidden = torch.randn(48, 192, generator=phrase_noise(1, 2))
    noise = torch.randn(40, 2, generator=phrase_noise(3, 4))
    noise[:, 0] = value
    shift, scale = (parameters.tensor(f"dp.flows.0.{name}")[0] for name in ("m", "scale"))
    moved = predictor(hidden, noise, None) / scale + shift
    torch.testing.assert_close(moved, noise[:, 0], rtol=0, atol=1e-3)
