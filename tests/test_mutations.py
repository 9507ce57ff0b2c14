"""Whether each mutation is caught takes an hour (make mutations); here: that it applies."""

import pytest

from tests.mutations import ROOT, file_of, mutations


@pytest.mark.parametrize("mutation", mutations(), ids=lambda m: f"{m.module} {m.name}")
def test_what_a_mutation_changes_is_there_once(mutation):
    text = file_of(mutation, ROOT).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, "write this mutation anew: its line has changed"
    assert mutation.new != mutation.old
