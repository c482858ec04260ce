"""Hyper-parameters from the command line."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from model_fns import hparams
from model_fns.premade_hparams import WideDeep
from model_fns.tabular_hparams import Network
from pipeline.types import UserError

_WIDTHS = st.lists(st.integers(1, 2**20), min_size=1, max_size=4).map(tuple)
_RATES = st.floats(0, exclude_min=True, allow_infinity=False)
_STRENGTHS = st.floats(0, allow_infinity=False)
_SHARES = st.floats(0, 1, exclude_max=True)
_OPEN_SHARES = st.floats(0, 1, exclude_min=True, exclude_max=True)
_SETTINGS = st.one_of(
    st.builds(
        WideDeep,
        hidden_units=_WIDTHS,
        dropout=_SHARES,
        batch_norm=st.booleans(),
        learning_rate=_RATES,
        wide_learning_rate=_RATES,
        wide_l1=_STRENGTHS,
        wide_l2=_STRENGTHS,
    ),
    st.builds(
        Network,
        hidden_units=_WIDTHS,
        dropout=_SHARES,
        batch_norm_momentum=_OPEN_SHARES,
        learning_rate=_RATES,
        l2=_STRENGTHS,
    ),
)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", {}),
        (" ", {}),
        ("hidden_units=[64,32]", {"hidden_units": (64, 32)}),
        ("hidden_units=[ 64 , 32 ]", {"hidden_units": (64, 32)}),
        ("hidden_units=[7]", {"hidden_units": (7,)}),
        ("hidden_units=7", {"hidden_units": (7,)}),
        ("hidden_units=[010]", {"hidden_units": (10,)}),
        ("dropout=0.5,hidden_units=[8,4]", {"dropout": 0.5, "hidden_units": (8, 4)}),
        (" dropout = 0.5 , wide_l1 = 1 ,", {"dropout": 0.5, "wide_l1": 1.0}),
        ("learning_rate=1e-3", {"learning_rate": 0.001}),
        ("learning_rate=1", {"learning_rate": 1.0}),
        ("batch_norm=true", {"batch_norm": True}),
        ("batch_norm=False", {"batch_norm": False}),
        ("batch_norm=yes", {"batch_norm": True}),
    ],
)
def test_good(text, changes):
    parsed = hparams.parse(text, WideDeep)
    assert parsed == dataclasses.replace(WideDeep(), **changes)
    for field in dataclasses.fields(WideDeep):
        value = getattr(parsed, field.name)
        assert type(value) is type(getattr(WideDeep(), field.name))


FORM = "not of the form name=value,name=[value,value]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dropout", FORM),
        ("dropout 0.5", FORM),
        ("hidden_units=64,32", FORM),
        ("hidden_units=[64,32", FORM),
        ("hidden_units=64]", FORM),
        ("hidden_units=[[64]]", FORM),
        ("[" * 100_000, FORM),
        (
            "depth=3",
            "'depth' is unknown to this model; it has optimizer, learning_rate,",
        ),
        ("DECIDES_VARIABLES=[a]", "is unknown to this model"),
        ("=3", "'' is unknown"),
        ("dropout=0.1,dropout=0.2", "dropout stands twice"),
        ("dropout=", "dropout= is not a finite number"),
        ("dropout=much", "dropout=much is not a finite number"),
        ("dropout=true", "dropout=true is not a finite number"),
        ("dropout=[0.1]", "dropout=[0.1] is not a finite number"),
        ("dropout=2020-13-45", "is not a finite number"),
        ("dropout=nan", "is not a finite number"),
        ("learning_rate=inf", "is not a finite number"),
        ("wide_l1=1e400", "is not a finite number"),
        ("batch_norm=1", "batch_norm=1 is not true or false"),
        ("batch_norm=", "batch_norm= is not true or false"),
        ("hidden_units=[a]", "hidden_units=[a] is not a list such as [64,32]"),
        ("hidden_units=[1.5]", "is not a list such as"),
        ("hidden_units=[64,,32]", "is not a list such as"),
        ("hidden_units=[true]", "is not a list such as"),
        (f"hidden_units={'9' * 5000}", "is not a list such as"),
        ("hidden_units=[]", "needs at least one width, each from 1 to 1048576"),
        ("hidden_units=", "needs at least one width"),
        ("hidden_units=[0]", "needs at least one width"),
        ("hidden_units=[64,-1]", "needs at least one width"),
        ("hidden_units=[1000000000000]", "needs at least one width"),
        ("dropout=1", "dropout must be in [0, 1)"),
        ("dropout=-0.1", "dropout must be in [0, 1)"),
        ("learning_rate=0", "learning_rate must be above 0"),
        ("wide_learning_rate=-1", "wide_learning_rate must be above 0"),
        ("wide_l2=-1", "wide_l2 may not be below 0"),
    ],
)
def test_bad(text, said):
    with pytest.raises(UserError) as caught:
        hparams.parse(text, WideDeep)
    message = str(caught.value)
    assert message.startswith("--hparams")
    assert said in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("batch_norm_momentum=1", "batch_norm_momentum must be in (0, 1)"),
        ("batch_norm_momentum=0", "batch_norm_momentum must be in (0, 1)"),
        ("dropout=1", "dropout must be in [0, 1)"),
        ("l2=-1", "l2 may not be below 0"),
        ("learning_rate=0", "learning_rate must be above 0"),
        ("hidden_units=[0]", "needs at least one width"),
        ("wide_l1=0", "'wide_l1' is unknown to this model"),
    ],
)
def test_bad_for_keras(text, said):
    with pytest.raises(UserError) as caught:
        hparams.parse(text, Network)
    assert said in str(caught.value)


def _shown(value) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    return str(value)


@hypothesis_settings(deadline=None)
@given(_SETTINGS)
def test_what_is_shown_is_read(settings):
    values = dataclasses.asdict(settings)
    text = ",".join(f"{name}={_shown(value)}" for name, value in values.items())
    assert hparams.parse(text, type(settings)) == settings


@hypothesis_settings(deadline=None)
@given(st.text(alphabet="dropout=hienu_s[]{},.:0123-e#&*! \n", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        hparams.parse(text, WideDeep)
    except UserError as error:
        assert str(error).startswith("--hparams")
