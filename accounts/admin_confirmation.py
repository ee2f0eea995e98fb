from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import reverse

View = Callable[..., HttpResponse]


def confirmed(question: str) -> Callable[[View], View]:
    """Let a link action of the admin act on POST alone; GET asks `question` first.

    Put it below unfold's `action`, which checks the permissions before both.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def ask_first(
            self: Any,  # noqa: ANN401  # subscripting ModelAdmin fails when it runs
            request: HttpRequest,
            object_id: str | None = None,
        ) -> HttpResponse:
            arguments = () if object_id is None else (object_id,)
            subject = object_id and self.get_object(request, object_id)
            if arguments and subject is None:
                raise Http404(f"There is no {self.opts.verbose_name} {object_id!r}.")
            if request.method == "POST":
                return view(self, request, *arguments)
            if request.method not in {"GET", "HEAD"}:
                return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
            page = "changelist" if object_id is None else "change"
            meta = self.opts
            back = reverse(
                f"admin:{meta.app_label}_{meta.model_name}_{page}", args=arguments
            )
            context = {
                **self.admin_site.each_context(request),
                "title": question,
                "subject": subject,
                "back": back,
            }
            return render(request, "admin/confirm_action.html", context)

        return ask_first

    return decorate
