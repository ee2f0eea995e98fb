"""Refusals in prose, told from answers that talk about refusing or not knowing."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.pipeline.refusal_detector import is_refusal

REFUSALS = [
    "I don't know.",
    "I don\u2019t know.",
    "i dont know",
    "I do not know the answer to this question.",
    "I really don't know.",
    "I'm sorry, I cannot answer that.",
    "I\u2019m sorry, but I can\u2019t help with that.",
    "Sorry, I can't answer.",
    "Sorry.",
    "I am unable to answer this question based on the evidence.",
    "I'm not sure.",
    "I am not certain about the fee.",
    "I have no information about this.",
    "I don't have enough information to answer.",
    "I must decline to answer.",
    "I lack the information to say.",
    "We do not know.",
    "We cannot answer this question.",
    "That is beyond what I know.",
    "As an AI language model, I cannot give advice.",
    "As a language model I am unable to say.",
    "The provided context does not mention the fee.",
    "The context doesn\u2019t say.",
    "The evidence does not contain the answer.",
    "The given information is not enough to answer.",
    "The information provided is insufficient.",
    "The knowledge base does not cover this.",
    "None of this is mentioned in the evidence.",
    "The fee is not specified in the provided documents.",
    "The colour isn't mentioned in any of the passages.",
    "There is no information about mortgages in the context.",
    "There is no information available.",
    "There is not enough information to answer the question.",
    "No information about this is found in the knowledge base.",
    "The question cannot be answered from the evidence.",
    "It can't be determined.",
    "Unknown.",
    "Not specified.",
    "Not stated",
    "It is not known.",
    "No answer.",
    "Cannot answer this.",
    "Unanswerable",
    "The fee is 12 euros. I don't know whether it applies abroad.",
    "\u201cI don\u2019t know.\u201d",
    "**I don't know.**",
    "I need more information to answer this question.",
    "I would need some further context.",
    "More context is needed.",
    "Additional information is required to answer the question.",
    "The date of birth is not specified in the given content.",
    "The notes do not say.",
    "These notes don\u2019t mention the mayor.",
    "The search results do not mention it.",
    "The text provides no information about it.",
    "The provided context gives no details.",
    "The information is not available.",
    "That information has not been disclosed.",
    "The exact answer is unknown.",
    "It is impossible to say.",
    "It's not possible to determine the answer.",
    "There is no way to know for sure.",
    "Nobody knows.",
    "No one really knows for certain.",
    # German
    "Das wei\u00df ich nicht.",
    "Ich wei\u00df es nicht.",
    "Ich weiss das leider nicht.",
    "Leider kann ich diese Frage nicht beantworten.",
    "Ich kann dazu keine Angaben machen.",
    "Ich habe dazu keine Informationen.",
    "Dazu liegen mir keine Informationen vor.",
    "Dazu gibt es keine Angaben.",
    "Der Kontext enth\u00e4lt dazu keine Angaben.",
    "Aus den Informationen geht das nicht hervor.",
    "Das geht aus den Belegen nicht hervor.",
    "Keine Ahnung.",
    "Unbekannt.",
    "Es tut mir leid.",
    "Die Frage kann nicht beantwortet werden.",
]

ANSWERS = [
    "The Tomb of the Unknown Soldier lies under the Arc de Triomphe.",
    "The Unknown Soldier",
    "The fee is not specified in your contract but in the price list.",
    "We cannot refund a cash advance.",
    "We don't provide travel insurance with the Classic card.",
    "We cannot verify a caller by e-mail.",
    "We are not able to reverse an instant transfer.",
    "The card cannot be unblocked.",
    "No, the fee is not refundable.",
    "No.",
    "None.",
    "If the evidence is insufficient, the dispute is closed.",
    "If you don't know your PIN, open Cards, Show PIN in the app.",
    "Customers who do not know their PIN order a new one.",
    "Callers may say \u201cI don't know\u201d when asked for the PIN.",
    'Press "I cannot sign in" on the start page.',
    "Your bank statement does not show pending payments.",
    "The statement does not mention the exchange rate.",
    "The customer's documents do not include a PIN.",
    "There is no annual fee.",
    "There is no information desk at the airport branch.",
    "There is no evidence needed below 50 euros.",
    "Payments from an unknown merchant are declined.",
    "Refuse the payment in the app.",
    "The merchant may refuse the card.",
    "Sorry for the delay: your card arrives in 5 working days.",
    "A refusal is sent by letter; the customer is told why.",
    "It is known as Tarn Pay.",
    "Not before 1 March 2026.",
    "In an unspecified emergency the hotline helps.",
    "The PIN is not known to the staff.",
    "I, the undersigned, dispute this payment.",
    "Type \u201cunknown\u201d in the field.",
    "Delivery notes do not contain prices.",
    "The notes of the meeting are not kept.",
    "Additional information is required to open an account.",
    "More details are needed by the branch before it pays.",
    "Nobody knows your PIN but you.",
    "No one knows the code of the safe except its owner.",
    "It is not possible to tell the balance by phone.",
    "It is impossible to determine the PIN from the card.",
    "There is no way to know the code of another card.",
    "The information is not available to callers who fail the check.",
    "The answer is unknown to the caller, so ask another question.",
    "I need to add: more information is in the price list.",
    "",
    # German
    "Die Geb\u00fchr steht nicht im Vertrag, sondern im Preisverzeichnis.",
    "Eine Erstattung ist nicht m\u00f6glich.",
    "Das Grabmal des unbekannten Soldaten",
    "Wenn Sie Ihre PIN nicht wissen, \u00f6ffnen Sie die App.",
    "Nein, die Karte kann nicht entsperrt werden.",
    "Keine Jahresgeb\u00fchr.",
    "Wir geben telefonisch keine PIN heraus.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_in_prose_is_seen(text):
    assert is_refusal(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_that_sounds_like_a_refusal_is_none(text):
    assert not is_refusal(text)


@given(st.sampled_from(REFUSALS), st.sampled_from(["'", "\u2019", "\u02bc", "`"]))
def test_the_kind_of_apostrophe_makes_no_difference(text, apostrophe):
    spelt = text.replace("\u2019", "'").replace("'", apostrophe)

    assert is_refusal(spelt)


@given(
    st.sampled_from(REFUSALS),
    st.sampled_from([str.upper, str.lower, str.title, lambda t: f"  {t}\n"]),
)
def test_case_and_space_around_make_no_difference(text, changed):
    assert is_refusal(changed(text))


@given(st.sampled_from([a for a in ANSWERS if a]), st.sampled_from(REFUSALS))
def test_a_refusal_after_an_answer_is_still_one(answer, refusal):
    assert is_refusal(f"{answer}\n{refusal}")


@given(st.text(max_size=2_000))
def test_any_text_is_judged(text):
    assert is_refusal(text) in {True, False}


@pytest.mark.parametrize("repeated", ["no ", "i can't ", "not ", "nothing about ", "ich kann "])  # fmt: skip
def test_long_texts_take_no_time(repeated):
    begun = process_time()
    is_refusal(repeated * (20_000 // len(repeated)))

    assert process_time() - begun < 2.0
