import json
from typing import Any

from django.core.paginator import EmptyPage, PageNotAnInteger
from django.utils.functional import cached_property
from unfold.paginator import InfinitePaginator

_COUNTED = 1_000


class EstimatingPaginator(InfinitePaginator):  # type: ignore[misc]  # unfold ships no types
    """Pages of a list that may hold a million rows, which nobody counts.

    Up to a thousand rows are counted; of more the planner's estimate is told. The page
    after the last one is empty and no error, for the last one is not known.
    """

    @cached_property
    def count(self) -> int:
        """The number of rows; of more than a thousand an estimate."""
        rows = self.object_list.order_by()
        counted: int = rows[: _COUNTED + 1].count()
        if counted <= _COUNTED:
            return counted
        plan = json.loads(rows.explain(format="json"))
        return max(counted, int(plan[0]["Plan"]["Plan Rows"]))

    def validate_number(self, number: Any) -> int:  # noqa: ANN401  # of an address
        """Return the number of a page.

        Raises:
            PageNotAnInteger: It is no number.
            EmptyPage: It is below 1.
        """
        try:
            page = int(number)
        except (TypeError, ValueError) as error:
            raise PageNotAnInteger(f"Page {number!r} is no number.") from error
        if page < 1:
            raise EmptyPage(f"Page {page} is below 1.")
        return page

    def page(self, number: Any) -> Any:  # noqa: ANN401  # unfold ships no types
        """Return a page; rows beyond the estimate are shown too."""
        page = self.validate_number(number)
        end = page * self.per_page
        return self._get_page(self.object_list[end - self.per_page : end], page, self)
