import pytest

from transformer_book import tables


def test_a_table_is_html_on_a_page_and_lines_in_a_terminal(monkeypatch):
    seen = {}
    monkeypatch.setattr(tables, "display", lambda data, raw: seen.update(data))
    tables.table(("wire", "loss"), [("a & b", "1–2"), ("plain", 3)])
    assert seen["text/plain"] == "wire  loss\na & b  1–2\nplain  3"
    assert "<tr><th>wire</th><th>loss</th></tr>" in seen["text/html"]
    assert "<td>a &amp; b</td><td>1\u2060–\u20602</td>" in seen["text/html"]
    tables.table(("", "loss"), [("plain", 3)])
    assert "<tr><td></td><th>loss</th></tr>" in seen["text/html"]
    with pytest.raises(ValueError, match=r"rows must have 2 values each, got \['a'\]"):
        tables.table(("wire", "loss"), [("a",)])
