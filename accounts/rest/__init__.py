"""Parts that the REST interfaces of all apps share: strict fields, filters, view sets."""

from .fields import (
    MAX_REPORTED,
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictListField,
    StrictMomentField,
    StrictPrimaryKeyField,
    StrictSlugField,
    StrictSlugListField,
    listed_slugs,
    no_such_row,
)
from .filters import (
    BooleanFilter,
    IsSetFilter,
    MomentFilter,
    NonEmptyForm,
    SlugFilter,
    StrictFilterSet,
)
from .serializers import (
    ShownSerializer,
    StrictModelSerializer,
    StrictSerializer,
    optional_text,
    unknown_names,
    username_field,
    validated,
)
from .views import KnownQueryView, ResourceViewSet, RowViewSet, csv_download
