"""What an import of a followed document does with what its document lacks."""

import os

import pytest

from tests.kb.sources.conftest import directory  # noqa: F401  # a fixture
from tests.kb.sources.following import check, follow, proposed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

CARDS = "What does a card cost?,A card costs 12 euros.\n"
LOANS = "How long does a loan run?,A loan runs for 60 months.\n"
ABROAD = "What does a transfer abroad cost?,A transfer abroad costs 3 euros.\n"
UNREADABLE = "Who may have a card?,\n"


def test_what_is_back_takes_its_proposal_back_beside_an_unreadable_row(directory):  # noqa: F811
    file = directory / "faq.csv"
    times = iter(range(1, 9))

    def write(*rows: str) -> None:
        file.write_text("question,answer\n" + "".join(rows))
        os.utime(file, (2_000_000_000 + next(times),) * 2)

    write(CARDS, LOANS, ABROAD)
    source = follow("folder", directory)
    check(source)
    write(CARDS, LOANS)
    check(source)
    assert proposed() == {"A transfer abroad costs 3 euros."}

    write(CARDS, ABROAD, UNREADABLE)
    check(source)
    assert proposed() == set()

    write(CARDS, ABROAD)
    check(source)
    assert proposed() == {"A loan runs for 60 months."}
