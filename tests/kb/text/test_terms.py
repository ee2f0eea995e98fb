from kb.text.terms import terms


def test_denial_is_seen_in_english_and_german():
    assert terms("They don\u2019t.").is_negated
    assert terms("Das geht nicht.").is_negated
    assert not terms("Nothingham is a knot.").is_negated
