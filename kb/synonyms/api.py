"""Synonyms over REST."""

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from kb.exceptions import SynonymNotFoundError
from kb.interface import api
from kb.synonyms.models import Synonym, SynonymQuerySet
from kb.synonyms.services import add_synonym, remove_synonym


class SynonymSerializer(api.ReferringSerializer):
    """A word that users write, and the word that the entries use for it."""

    class Meta:
        model = Synonym
        fields = ["id", "knowledge_base", "word", "means", "added_by", "created_at"]


class NewSynonymSerializer(api.KnowledgeSerializer):
    """A new synonym; the knowledge base may be omitted if there is only one."""

    class Meta:
        model = Synonym
        fields = ["knowledge_base", "word", "means"]
        validators = ()  # the service reports which synonym exists


class SynonymFilter(rest.StrictFilterSet):
    knowledge_base = api.KnowledgeBaseFilter()


@extend_schema_view(list=extend_schema(summary="List synonyms"))
class SynonymViewSet(rest.RowViewSet[Synonym]):
    """The synonyms of the knowledge bases that the caller may ask, newest first."""

    permission_classes = [api.AgentReadsCuratorWrites]
    serializer_class = SynonymSerializer
    filterset_class = SynonymFilter
    lookup_url_kwarg = "synonym_id"
    not_found = SynonymNotFoundError

    def get_queryset(self) -> SynonymQuerySet:
        rows = Synonym.objects.visible_to(self.request.user)
        return rows.select_related("knowledge_base", "added_by")

    @extend_schema(
        summary="Add a synonym",
        request=NewSynonymSerializer,
        responses={201: SynonymSerializer, 409: "The word already has a synonym."},
    )
    def create(self, request: Request) -> Response:
        """Add a synonym: questions with a word are read with the entries' word."""
        made = add_synonym(by=self.user, **self.validated(NewSynonymSerializer))
        return self.row_response(made, status.HTTP_201_CREATED)

    @extend_schema(summary="Remove a synonym", responses={204: None})
    def destroy(self, request: Request, synonym_id: int) -> Response:
        """Remove a synonym, so that the word is read literally again."""
        remove_synonym(self.get_object(), by=self.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
