from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest

from accounts.admin_parts import ReadOnlyAdmin
from accounts.base_admin import badge, column, holders_of
from accounts.roles import caller
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.embedding.models import EmbeddingModel
from kb.embedding.switch import KIND


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(ReadOnlyAdmin):
    when_empty = "The embedder that runs is listed here once it is used."
    list_display = [
        "name", "shown_state", "short_fingerprint", "dimensions", "number_of_entries",
        "activated_at",
    ]  # fmt: skip
    fields = [
        "name", "fingerprint", "dimensions", "state", "created_at", "activated_at",
    ]  # fmt: skip
    actions = ["switch"]
    has_switch_permission = holders_of("kb.change_embeddingmodel")
    shown_state = badge(
        "state", {"active": "success", "candidate": "info", "retired": "warning"}
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[EmbeddingModel]:
        models: QuerySet[EmbeddingModel] = super().get_queryset(request)
        visible = Audience.objects.visible_to(request.user)
        embedded = Count(
            "embeddings__entry",
            filter=Q(embeddings__entry__audience__in=visible),
            distinct=True,
        )
        return models.annotate(entry_count=embedded).order_by("-created_at")

    short_fingerprint = column("fingerprint", lambda model: model.fingerprint[:12])
    number_of_entries = column("entries embedded", lambda model: model.entry_count)

    @admin.action(description="Switch to this model", permissions=["switch"])
    def switch(self, request: HttpRequest, chosen: QuerySet[EmbeddingModel]) -> None:
        models = list(chosen[:2])
        if len(models) != 1:
            self.message_user(
                request, "Choose one model to switch to.", level=messages.ERROR
            )
            return
        (model,) = models
        if model.state == EmbeddingModel.State.ACTIVE:
            self.message_user(
                request, f"{model} is active already.", level=messages.WARNING
            )
            return
        job = enqueue(
            KIND,
            {"name": model.name},
            owner=caller(request),
            idempotency_key=f"{KIND}:{model.fingerprint}",
        )
        self.message_user(
            request,
            f"Embedding everything under {model}; it is switched to at the end. "
            f"Its job: {job.pk}.",
            level=messages.SUCCESS,
        )
