"""Export and erasure of a person's data over REST, for tokens that manage users."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_202_ACCEPTED

from accounts.provider.provisioning import UserViewSet
from accounts.rest import StrictCharField, StrictSerializer
from accounts.roles import caller
from jobs.api import JobSerializer
from qa.privacy.persons import export_person, request_erasure


class ErasureSerializer(StrictSerializer):
    """Confirmation of whose data is erased."""

    username = StrictCharField(
        max_length=150, help_text="The user name in the URL, once more."
    )


class PersonViewSet(UserViewSet):
    """The data stored about the person of an account; superusers are not accessible."""

    @extend_schema(
        summary="Export what is stored about a person", responses=OpenApiTypes.OBJECT
    )
    def export(self, request: Request, username: str) -> Response:
        """Return the account and everything that it asked, wrote and changed, by kind.

        `entries_of_their_questions` are entries created from, or linked to, what they
        asked; an erasure leaves these as they are.
        """
        return Response(export_person(self.get_object()))

    @extend_schema(
        summary="Erase a person's words and names",
        request=ErasureSerializer,
        responses={202: JobSerializer},
    )
    def erase(self, request: Request, username: str) -> Response:
        """Lock an account out and erase its words and names by a job; irreversible.

        The job's result counts the questions and lists the `entries` that may contain
        the person's words and are kept.
        """
        person = self.get_object()
        said = self.validated(ErasureSerializer)["username"]
        if said != person.username:
            msg = f"{said!r} is not the account in this URL; nothing was erased."
            raise ValidationError({"username": [msg]})
        job = request_erasure(person, by=caller(request))
        return Response(JobSerializer(job).data, HTTP_202_ACCEPTED)
