from accounts.pagination import NewestFirstPagination


class BySlugPagination(NewestFirstPagination):
    """Pages by slug, for rows that keep no time of creation."""

    ordering = ("slug",)
