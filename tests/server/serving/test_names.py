"""Which model an alias stands for, and which names cannot be served together."""

import pytest

from server.serving.names import assign_aliases
from stages.contract.errors import StartError
from stages.contract.model import ModelSpec


def model(model_id, *aliases):
    return ModelSpec(model_id, aliases, (), (), bool, dict)


ONE, OTHER = model("one", "tts-1", "own"), model("other", "tts-1")


def test_an_alias_of_several_models_goes_to_the_first():
    assert assign_aliases([ONE, OTHER], {}) == {"one": ("tts-1", "own"), "other": ()}
    assert assign_aliases([OTHER, ONE], {}) == {"other": ("tts-1",), "one": ("own",)}


def test_a_setting_gives_an_alias_to_another_model():
    assert assign_aliases([ONE, OTHER], {"tts-1": "other"}) == {
        "one": ("own",),
        "other": ("tts-1",),
    }


def test_a_setting_may_make_a_new_alias():
    assert set(assign_aliases([ONE], {"mine": "one"})["one"]) == {"tts-1", "own", "mine"}


@pytest.mark.parametrize(
    ("models", "chosen", "message"),
    [
        ([ONE, ONE], {}, "two models have the id 'one'"),
        ([ONE, model("own")], {}, "the alias 'own' of one is the id of another model"),
        ([ONE, OTHER], {"other": "one"}, "the alias 'other' of one is the id of another model"),
        ([ONE], {"tts-1": "nobody"}, "tts-1 goes to 'nobody', which is not the id of a model"),
    ],
)
def test_what_clashes_is_refused(models, chosen, message):
    with pytest.raises(StartError, match=message):
        assign_aliases(models, chosen)
