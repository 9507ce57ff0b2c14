import cmath

import pytest
import torch
from torch.testing import assert_close

from tests.package.oracles import position_by_loops
from transformer.positional import (
    POSITIONS,
    LearnedPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoidal_encoding,
)

KINDS = pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])


@pytest.mark.parametrize(("length", "d_model"), [(1, 2), (7, 10), (50, 64)])
def test_sinusoids_equal_plain_loops(length, d_model):
    table = sinusoidal_encoding(length, d_model)
    assert table.dtype == torch.float32
    assert_close(table.double(), position_by_loops(length, d_model), rtol=0, atol=1e-7)


def test_far_positions_are_exact_too():
    # float32 angles are off by 4e-4 at position 10,000
    far = sinusoidal_encoding(10_001, 8)[10_000].double()
    assert_close(far, position_by_loops(10_001, 8)[10_000], rtol=0, atol=1e-7)


@KINDS
def test_adds_the_row_of_each_position(kind):
    positions = kind(9, 6)
    x = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))
    assert_close(positions.embed(x), x + positions.table[:4])
    assert_close(positions.embed(x, start=5), x + positions.table[5:])


@pytest.mark.parametrize("kind", [Positions, SinusoidalPositions, LearnedPositions])
def test_what_is_not_rotary_leaves_queries_and_keys_alone(kind):
    positions = kind() if kind is Positions else kind(9, 6)
    x = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0))
    assert positions.turn(x, start=2) is x
    assert positions.bias(4, 6) is None


@pytest.mark.parametrize("positions", [Positions(), RotaryPositions(9, 6)])
def test_what_is_not_added_leaves_embeddings_alone(positions):
    x = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))
    assert positions.embed(x, start=2) is x
    assert positions.bias(4, 6) is None


@pytest.mark.parametrize(
    ("word", "at_embedding", "in_attention"),
    [
        ("sinusoidal", SinusoidalPositions, Positions),
        ("learned", LearnedPositions, Positions),
        ("rotary", Positions, RotaryPositions),
        ("none", Positions, Positions),
    ],
)
def test_each_kind_is_made_where_it_acts(word, at_embedding, in_attention):
    kind = POSITIONS[word]
    assert type(kind.at_embedding(max_len=9, d_model=6)) is at_embedding
    assert type(kind.in_attention(max_len=9, d_k=4, n_heads=2)) is in_attention
    if at_embedding is not Positions:
        assert kind.at_embedding(max_len=9, d_model=6).table.shape == (9, 6)
    if in_attention is RotaryPositions:
        assert kind.in_attention(max_len=9, d_k=4, n_heads=2).cos.shape == (9, 4)


@KINDS
def test_refuses_a_position_past_max_len(kind):
    positions, x = kind(9, 6), torch.zeros(1, 5, 6)
    with pytest.raises(ValueError, match="no longer than max_len = 9, got 10"):
        positions.embed(x, start=5)


def test_only_learned_positions_are_learned_and_saved():
    assert list(LearnedPositions(3, 4).state_dict()) == ["table"]
    assert not SinusoidalPositions(3, 4).state_dict()
    assert not RotaryPositions(3, 4).state_dict()
    assert not list(SinusoidalPositions(3, 4).parameters())
    (table,) = LearnedPositions(2000, 64).parameters()
    assert_close(table.std(), torch.tensor(64**-0.5), rtol=0.02, atol=0)


def test_rotary_turns_complex_numbers():
    d_k, T, start = 6, 5, 3
    x = torch.randn(2, 4, T, d_k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    turned = RotaryPositions(10, d_k).turn(x, start)
    for t in range(T):
        for i in range(d_k // 2):
            angle = (start + t) / 10_000 ** (2 * i / d_k)
            z = torch.complex(x[..., t, 2 * i], x[..., t, 2 * i + 1]) * cmath.exp(1j * angle)
            got = torch.complex(turned[..., t, 2 * i], turned[..., t, 2 * i + 1])
            assert_close(got, z, rtol=0, atol=1e-6)


def test_rotary_products_depend_on_the_distance_alone():
    turn = RotaryPositions(200, 16).turn
    q, k = torch.randn(2, 1, 1, 1, 16, generator=torch.Generator().manual_seed(0))
    products = [
        [(turn(q, s + gap) * turn(k, s)).sum() for s in (0, 1, 50, 190)] for gap in (0, 1, 9)
    ]
    products = torch.tensor(products)
    assert_close(products, products[:, :1].expand(-1, 4), rtol=0, atol=1e-4)
    assert (products[:, 0].diff().abs() > 1e-2).all()


def test_rotary_keeps_lengths_and_the_dtype():
    turn = RotaryPositions(20, 8).turn
    x = torch.randn(1, 1, 20, 8, generator=torch.Generator().manual_seed(0))
    assert_close(turn(x).norm(dim=-1), x.norm(dim=-1))
    assert turn(x.bfloat16()).dtype == torch.bfloat16
    with pytest.raises(ValueError, match="max_len = 20, got 21"):
        turn(x, start=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sinusoidal_encoding(4, 7), "d_model must be even, .* got 7"),
        (lambda: sinusoidal_encoding(0, 8), "length must be positive, got 0"),
        (lambda: RotaryPositions(4, 5), "d_k must be even, .* got 5"),
        (
            lambda: SinusoidalPositions(4, 6).embed(torch.zeros(1, 2, 4)),
            r"x must have shape \(..., 6\)",
        ),
        (
            lambda: LearnedPositions(4, 6).embed(torch.zeros(1, 2, 4)),
            r"x must have shape \(..., 6\)",
        ),
        (
            lambda: RotaryPositions(4, 6).turn(torch.zeros(1, 1, 2, 4)),
            r"x must have shape \(..., 6\)",
        ),
        (
            lambda: RotaryPositions(4, 6).turn(torch.zeros(1, 1, 2, 6), -1),
            "start must not be negative",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_sizes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rotary_turns_each_text_from_its_own_place():
    turn = RotaryPositions(20, 8).turn
    x = torch.randn(3, 2, 4, 8, generator=torch.Generator().manual_seed(0))
    starts = torch.tensor([[5], [0], [16]])
    alone = torch.cat([turn(x[i : i + 1], int(start)) for i, start in enumerate(starts)])
    assert torch.equal(turn(x, starts), alone)
    assert torch.equal(turn(x, starts + torch.arange(4)), alone)
