"""The leak matrix as a table: `pytest tests/nescio/test_leak_matrix.py --leak-matrix FILE`.

A cell holds what a role got at an address with every method that it has: the statuses where
they were the same with the secret and without it, OPEN where they were not, and for who may
see the secret whether it was shown.
"""

from collections import defaultdict
from collections.abc import Mapping

Asked = tuple[str, str, str]
"""Method, address, body as JSON."""

Cells = Mapping[str, str]
"""By route."""

ROLES = (
    "anonymous", "no role", "agent", "integrator", "widget", "sme", "curator", "admin",
    "member", "superuser",
)  # fmt: skip
HEAD = """# The leak matrix by address

Made by `python -m pytest tests/nescio/test_leak_matrix.py --leak-matrix {file}`; what is
asked and how it is judged: [The leak matrix](entitlement.md). A number is the status that
the role got, the same while the secret was there and when it was gone; OPEN would be a
difference. The last two columns are those who may see it.

{open} of {cells} cells are open.

"""


def cells(
    routes: Mapping[Asked, str], statuses: Mapping[Asked, int], leaks: set[Asked]
) -> Cells:
    """Return a role's cells, by the questions that were asked at each route."""
    found: dict[str, set[int]] = defaultdict(set)
    is_open = {routes[asked] for asked in leaks}
    for asked, status in statuses.items():
        found[routes[asked]].add(status)
    return {
        route: "OPEN" if route in is_open else " ".join(map(str, sorted(got)))
        for route, got in found.items()
    }


def table(columns: Mapping[str, Cells], *, file: str) -> str:
    """Return the page: a row for each route, a column for each role."""
    roles = [role for role in ROLES if role in columns]
    routes = sorted({route for role in roles for route in columns[role]})
    rows = [[columns[role].get(route, "") for role in roles] for route in routes]
    lines = [
        f"| `/{route.replace('|', '&#124;')}` | {' | '.join(row)} |"
        for route, row in zip(routes, rows, strict=True)
    ]
    held = [cell for row in rows for cell in row]
    head = HEAD.format(file=file, open=held.count("OPEN"), cells=len(held))
    titles = f"| address | {' | '.join(roles)} |\n|{'---|' * (len(roles) + 1)}\n"
    return head + titles + "\n".join(lines) + "\n"
