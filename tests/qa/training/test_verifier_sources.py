"""Public data as entries and questions: every source's own layout."""

import gzip
import json
import zipfile

import pytest

from qa.exceptions import TrainingDataError
from qa.training.knowledge_sets import KnowledgeSet, SourceEntry, find
from qa.training.verifier_candidates import retrieve
from qa.training.verifier_desks import (
    read_acid,
    read_banking77,
    read_covid_faq,
    read_hint3,
    read_stack_faq,
    read_support_desks,
)
from qa.training.verifier_sources import (
    in_paragraphs,
    read_natural_questions,
    read_qamr,
    read_squad,
    read_squad_train,
)

PARAGRAPH = "The branch opens at nine. It closes at five."


def squad(**question):
    said = {"question": "When does it open?", "answers": [{"text": "nine"}], **question}
    article = {
        "title": "The_bank",
        "paragraphs": [{"context": PARAGRAPH, "qas": [said]}],
    }
    return {"data": [article]}


def test_the_sentence_with_the_marked_words_answers(tmp_path):
    file = tmp_path / "squad.json"
    file.write_text(json.dumps(squad()))
    known = read_squad(file, name="squad", licence="ours")
    said = [entry.text for entry in known.entries]
    assert said == ["The branch opens at nine.", "It closes at five."]
    (question,) = known.questions
    assert question.answered_by == {0}
    assert (question.words, question.group) == ("nine", "The_bank")
    assert known.entries[0].title == "The bank"


def test_a_question_without_an_answer_is_answered_by_nothing(tmp_path):
    file = tmp_path / "squad.json.gz"
    with gzip.open(file, "wt") as stream:
        json.dump(squad(is_impossible=True, answers=[]), stream)
    (question,) = read_squad(file, name="squad", licence="ours").questions
    assert question.answered_by == frozenset()


def test_articles_that_are_not_named_stay_unseen(tmp_path):
    file = tmp_path / "squad.json"
    file.write_text(json.dumps(squad()))
    assert not read_squad(file, name="s", licence="", articles=["Other"]).questions


def test_neighbouring_sentences_of_one_title_become_paragraphs():
    known = KnowledgeSet("facts", "ours")
    for number in range(40):
        title = "Cards" if number < 25 else "Loans"
        place = known.place(SourceEntry(f"Fact {number} is a sentence.", title))
        known.ask(f"What is fact {number}?", [place])
    known.ask("What is nowhere?", [])

    made = in_paragraphs(known, seed=1)

    assert made.name == "facts_paragraphs"
    whole = " ".join(entry.text for entry in made.entries)
    assert whole == " ".join(entry.text for entry in known.entries)
    counts = [entry.text.count("Fact") for entry in made.entries]
    assert max(counts) <= 5
    assert sum(counts) / len(counts) > 2
    *asked, foreign = made.questions
    assert foreign.answered_by == frozenset()
    for number, question in enumerate(asked):
        (at,) = question.answered_by
        assert f"Fact {number} is" in made.entries[at].text
        assert made.entries[at].title == ("Cards" if number < 25 else "Loans")


def test_a_long_sentence_is_a_paragraph_of_its_own():
    known = KnowledgeSet("facts", "ours")
    known.place(SourceEntry("word " * 120 + "end.", "Cards"))
    known.place(SourceEntry("word " * 90 + "end.", "Cards"))
    assert len(in_paragraphs(known, seed=1).entries) == 2


def test_parts_of_squad_are_one_knowledge_base(tmp_path):
    contexts, pairs = tmp_path / "contexts.json", tmp_path / "pairs.json"
    row = {"context": PARAGRAPH, "qas": [{"question": "When?", "answer": "nine"}]}
    contexts.write_text(json.dumps([row]))
    pairs.write_text(json.dumps({"questions": ["Who?"], "answers": ["It was Ada."]}))
    archive = tmp_path / "cr.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("causes/reason_gold_train.tsv", "qid\treason\na1\tE\n")
        attention = "qid\tquestion\tword_att\na1\tWho was Bob ?\t0\nb2\tWhy ?\t0\n"
        file.writestr("rationales/word_att_gold_train.tsv", attention)
    known = read_squad_train(contexts, pairs, archive, limit=1, seed=0)
    asked = {row.text: bool(row.answered_by) for row in known.questions}
    assert asked == {"When?": True, "Who?": True, "Who was Bob?": False}


def test_questions_that_mark_the_same_words_ask_the_same(tmp_path):
    said, asked = tmp_path / "s.tsv", tmp_path / "q.tsv"
    said.write_text("k\tAda wrote the first program .\n")
    lines = [("Who wrote it?", "0"), ("Who was the author?", "0"), ("What?", "2 3 4")]
    asked.write_text(
        "".join(f"k\t0\t1\t0\t1\t{text}\t{at}\t0:0\t0:0\n" for text, at in lines)
    )
    facts, pairs = read_qamr(said, [asked], seed=0)
    assert facts.entries == [SourceEntry("Ada wrote the first program.")]
    assert {entry.text for entry in pairs.entries} == {"Ada.", "The first program."}
    (paraphrase,) = pairs.questions
    assert pairs.entries[min(paraphrase.answered_by)].text == "Ada."


def test_our_own_organisations_have_questions_that_nothing_answers():
    sets = read_support_desks()
    assert len(sets) == 463
    for known in sets:
        answered = [row for row in known.questions if row.answered_by]
        assert 0.4 <= len(answered) / len(known.questions) < 0.75
        assert len({row.text for row in known.questions}) == len(known.questions)


def test_what_looks_like_an_answer_comes_first():
    known = KnowledgeSet("k", "ours")
    for text in ("The branch opens at nine.", "Dogs may not enter.", "A card is free."):
        known.place(SourceEntry(text))
    first, *_ = retrieve(known, ["When does the branch open?"])[0]
    assert first == 0


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TrainingDataError, match=r"no squad\.json below"):
        find(tmp_path, "squad.json")


def test_customers_questions_are_answered_by_the_entry_of_their_intent(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text(
        'text,category\n"My card, it never came",card_arrival\nno intent\n'
        "Did I pay twice?,transaction_charged_twice\n"
    )
    known = read_banking77(file)
    assert len(known.entries) == 77
    first, second = known.questions
    (place,) = first.answered_by
    assert (
        known.entries[place].question == "Where is the new card that I am waiting for?"
    )
    assert (first.text, first.group) == ("My card, it never came", "card_arrival")
    assert second.answered_by != first.answered_by


def test_every_second_thread_is_held_out_with_its_questions(tmp_path):
    file = tmp_path / "faq.json"
    threads = [
        {"question": f"Title {at}?", "answer": ["word " * 200, "other"],
         "rephr": [f"How is {at}?", "*", None]}
        for at in range(3)
    ]  # fmt: skip
    file.write_text(json.dumps({"root": {"qapair": threads}}))
    fitted, held_out = read_stack_faq(file)
    assert [q.text for q in fitted.questions] == ["How is 0?", "How is 2?"]
    assert [q.text for q in held_out.questions] == ["How is 1?"]
    assert held_out.entries[0].question == "Title 1?"
    assert held_out.entries[0].text.split() == ["word"] * 150
    assert held_out.questions[0].answered_by == {0}


def test_what_a_desk_had_no_answer_to_is_answered_by_none(tmp_path):
    for desk in ("curekart", "powerplay11", "sofmattress"):
        for part in ("train", "test"):
            (tmp_path / f"{desk}_{part}.csv").write_text(
                "sentence,label\n"
                f"where is my  {part} order,ORDER_STATUS\n"
                "Where is my train order,ORDER_STATUS\n"
                "hello,GREETINGS_DAY\n"
                f"is {part} vegan,NO_NODES_DETECTED\n"
            )
    found = {each.name: each for each in read_hint3(tmp_path)}
    assert set(found) == {"hint3_curekart", "hint3_powerplay11", "hint3_sofmattress"}
    known = found["hint3_curekart"]
    asked = {
        q.text: [known.entries[at] for at in q.answered_by] for q in known.questions
    }
    assert list(asked) == [
        "where is my train order", "is train vegan",
        "where is my test order", "is test vegan",
    ]  # fmt: skip
    (entry,) = asked["where is my train order"]
    assert "order" in entry.question.lower()
    assert asked["is test vegan"] == []


def test_intents_that_answer_the_same_are_both_answers_and_few_of_one_are_read(
    tmp_path,
):
    many = "".join(f"INFO_AMT_DUE,what do i owe {at}\n" for at in range(200))
    header = "INTENT_NAME,UTTERANCES\n"
    (tmp_path / "customer_training.csv").write_text(
        f"{header}INFO_INS_CARD_PRINT,print my  card\nST_HELLO,hello you\n{many}"
    )
    (tmp_path / "customer_testing.csv").write_text(
        f"{header}INFO_INS_CARD_PRINT,print my card\nINFO_INS_CARD_PRINT,card\n"
    )
    known = read_acid(tmp_path, seed=1)
    assert read_acid(tmp_path, seed=1).questions == known.questions
    printed = [q for q in known.questions if q.group == "INFO_INS_CARD_PRINT"]
    assert [q.text for q in printed] == ["print my card"]
    assert {known.entries[at].question for at in printed[0].answered_by} == {
        "How do I print my insurance card?",
        "Where do I find my proof of insurance?",
    }
    assert {q.group for q in known.questions} == {"INFO_AMT_DUE", "INFO_INS_CARD_PRINT"}
    assert len(known.questions) == 61


def test_a_search_question_is_answered_by_the_sentences_that_were_marked(tmp_path):
    paragraph = "He was born in Rome , Italy . He died in 1901 ."
    note = {"start": 30, "end": 47, "string": paragraph[30:]}
    qed = tmp_path / "qed.jsonlines"
    rows = [
        {"question_text": "when did he die", "title_text": "He", "paragraph_text": paragraph,
         "sentence_starts": [0, 30],
         "annotation": {"explanation_type": kind, "selected_sentence": note}}
        for kind in ("single_sentence", "none")
    ]  # fmt: skip
    qed.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    clapnq = tmp_path / "clapnq.jsonl"
    texts = ["Rain is water .", "It falls .", "Snow is cold ."]
    rows = [
        {"input": question, "passages": [{"title": "Rain", "sentences": texts}],
         "output": [{"selected_sentences": chosen}]}
        for question, chosen in (("what is rain", texts[:2]), ("why does it rain", []))
    ]  # fmt: skip
    clapnq.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    known = read_natural_questions(qed, [clapnq])
    found = {
        q.text: {known.entries[at].text for at in q.answered_by}
        for q in known.questions
    }
    assert found == {
        "when did he die": {"He died in 1901."},
        "what is rain": {"Rain is water.", "It falls."},
        "why does it rain": set(),
    }
    assert {known.entries[at].title for at in (0, 2)} == {"He", "Rain"}


def test_a_damaged_line_is_refused_with_its_file(tmp_path):
    file = tmp_path / "qed.jsonlines"
    file.write_text("{}\n{")
    with pytest.raises(TrainingDataError, match=r"qed\.jsonlines is not JSON"):
        read_natural_questions(file, [])


def test_what_people_ask_about_covid_is_answered_by_the_question_with_its_answer(
    tmp_path,
):
    file = tmp_path / "covid_faq.json"
    rows = [
        {"query_type": kind, "question": question, "answer": answer}
        for kind, question, answer in (
            ("faq", "Can it spread? ", "Yes. " * 200),
            ("user_query", "is it contagious", "Yes. " * 200),
            ("user_query", "who asked", "Somebody."),
        )
    ]
    file.write_text(json.dumps(rows))
    known = read_covid_faq(file)
    assert known.entries[0].question == "Can it spread?"
    assert known.entries[0].text.split() == ["Yes."] * 150
    assert [q.text for q in known.questions] == ["is it contagious"]
    assert known.questions[0].answered_by == {0}
