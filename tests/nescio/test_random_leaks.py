"""Random people look everywhere while entries, audiences, groups and roles change at random.

Each case is one look: what it tells is held against a plain reference, so that nothing
hidden is shown (a leak) and nothing visible is missing. After some hundred cases all begins
again with an empty world. Many cases, with their counts:

    pytest tests/nescio/test_random_leaks.py --leak-cases 10000
"""

from collections import Counter

import pytest
from django.core.management import call_command

from accounts.acting import as_owner
from kb.embedding import services as embedding
from nescio.embedded.places import Places
from qa.policies.services import activate, active_policy, new_version
from tests.factories import make_knowledge_base
from tests.nescio.leak_looks import Looks
from tests.nescio.leak_world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
_CASES_OF_A_WORLD = 500


@pytest.mark.parametrize("seed", [20261122])
def test_random_looks_tell_what_a_plain_reference_allows(
    seed, pytestconfig, record_property, settings, tmp_path
):
    settings.PLACES = Places(tmp_path)  # of the exports
    cases = pytestconfig.getoption("--leak-cases")
    looked: Counter[str] = Counter()
    wrong: list[tuple[int, str, object]] = []
    shown = 0

    for begin in range(0, cases, _CASES_OF_A_WORLD):
        if begin:
            with as_owner("tests"):
                # With sequences begun again, rows that are filled in would be in the way.
                call_command(
                    "flush", verbosity=0, interactive=False, reset_sequences=False
                )
            embedding._last_active.clear()
        looks = look_around(seed + begin, min(_CASES_OF_A_WORLD, cases - begin))
        looked += looks.cases
        shown += looks.shown
        wrong += [(begin, *each) for each in looks.wrong]

    counts = ", ".join(f"{name} {count}" for name, count in looked.most_common())
    record_property(
        "cases",
        f"{cases} random cases (seed {seed}), {shown} marks shown, "
        f"{len(wrong)} wrong: {counts}",
    )
    assert not wrong, wrong[:20]
    assert shown > cases


def look_around(seed: int, cases: int) -> Looks:
    """Look so many times at a new world that changes with every third look."""
    base = make_knowledge_base()
    # Near matches are refused and named as near misses; no language model is asked.
    strict = {"alpha": 0.05, "alpha_unverified": 0.05, "verbatim_distance": 0.05}
    activate(new_version(active_policy(base), by=None, **strict))
    world = World(seed)
    looks = Looks(world)
    for number in range(cases):
        if number % 3 == 0:
            world.change()
        looks.look()
    world.check()
    return looks
