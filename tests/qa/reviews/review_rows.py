"""Reviews written straight into the table, and what must be there to be looked at."""

from kb.models import Entry
from qa.models import AnswerEvidence, Review, ReviewSample
from qa.reviews.sampling import SampleOrder, draw_sample
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer


def make_review(*, refused: bool = False, **fields) -> Review:
    """Make a review of an answer, or of a refusal that found nothing."""
    cited = () if refused else (make_entry(),)
    answer = make_answer(make_user(), cited=cited)
    return Review.objects.create(answer=answer, **fields)


def cited_entry(review: Review) -> Entry:
    """Return the entry that the reviewed answer rests on."""
    return entry_of(review.answer.evidence.get())


def entry_of(row: Review | AnswerEvidence) -> Entry:
    """Return the entry of a review or of a piece of evidence."""
    assert row.entry is not None
    return row.entry


def drawn(order: SampleOrder) -> ReviewSample:
    """Draw a sample of which there is something to draw."""
    sample = draw_sample(order, by=None)
    assert sample is not None
    return sample
