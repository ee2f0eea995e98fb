from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from accounts.models import optional_row, optional_user
from kb.documents.models import KnowledgeBase
from kb.tags.models import Tag
from qa.answers.models import Answer


class ReviewSample(models.Model):
    """A stratified random sample of answers for experts to judge.

    It is reproducible from seed, window and dimensions: within each stratum, the
    answers with the smallest digests of seed and id are drawn.
    """

    class Dimension(models.TextChoices):
        """The dimensions of strata; the last is dropped first."""

        CERTAINTY = "certainty", "certainty"
        OUTCOME = "outcome", "outcome and gate"
        VOTE = "vote", "vote"
        PRODUCT_LINE = "product_line", "product line"
        LINE_OF_BUSINESS = "line_of_business", "line of business"
        PERIOD = "period", "day"

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="review_samples"
    )
    seed = models.BigIntegerField(help_text="The same seed draws the same answers.")
    hours = models.FloatField(
        validators=[MinValueValidator(0.05), MaxValueValidator(200)],
        help_text="Experts' time for the sample, in hours.",
    )
    minutes_a_review = models.FloatField(
        default=4,
        validators=[MinValueValidator(0.25), MaxValueValidator(120)],
        help_text="Minutes per review.",
    )
    second_share = models.FloatField(
        default=0.2,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="Share of answers that a second expert reviews too, in [0, 1].",
    )
    since = models.DateTimeField(help_text="Start of the period, inclusive.")
    until = models.DateTimeField(help_text="End of the period, exclusive.")
    dimensions = ArrayField(
        models.CharField(max_length=16, choices=Dimension.choices),
        default=list,
        help_text="Dimensions by which its strata differ; the others were merged "
        "because there were more strata than reviews.",
    )
    population = models.PositiveIntegerField(
        default=0, help_text="Answers eligible for the sample."
    )
    drawn_by = optional_user("+", "Empty if drawn by the schedule.", blank=True)
    drawn_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-drawn_at", "-pk"]
        indexes = [
            models.Index(
                fields=["knowledge_base", "-drawn_at"], name="review_sample_newest"
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(since__lt=F("until")), name="review_sample_window_not_empty"
            ),
            models.CheckConstraint(
                condition=Q(hours__gt=0, minutes_a_review__gt=0),
                name="review_sample_time_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"sample {self.pk}"

    @property
    def answers(self) -> int:
        """The number of answers drawn (one query)."""
        drawn = self.strata.aggregate(drawn=models.Sum("drawn"))["drawn"]
        return drawn or 0


class ReviewStratum(models.Model):
    """One stratum of a sample, with the numbers of its answers and of those drawn.

    Fields of dimensions that the sample does not use are blank or null.
    """

    class Vote(models.TextChoices):
        """How an answer was voted on; down if anybody voted it down."""

        UP = "up", "up"
        DOWN = "down", "down"
        NONE = "none", "no vote"

    class Certainty(models.TextChoices):
        """Whether a slight change could have reversed the decision."""

        CLOSE = "close", "close"
        CLEAR = "clear", "clear"

    sample = models.ForeignKey(
        ReviewSample, on_delete=models.CASCADE, related_name="strata"
    )
    vote = models.CharField(max_length=4, blank=True, choices=Vote.choices)
    certainty = models.CharField(max_length=5, blank=True, choices=Certainty.choices)
    outcome = models.CharField(max_length=8, blank=True, choices=Answer.Outcome.choices)
    gate = models.CharField(
        max_length=12, blank=True, help_text="The gate that refused; empty for answers."
    )
    product_line = optional_row(Tag, "+", blank=True)
    line_of_business = optional_row(Tag, "+", blank=True)
    period = models.DateField(
        null=True, blank=True, help_text="The day of the answers."
    )
    population = models.PositiveIntegerField(
        help_text="Number of answers in the stratum."
    )
    drawn = models.PositiveIntegerField(
        help_text="Number of answers drawn at random, without second reviews."
    )

    class Meta:
        ordering = ["sample", "pk"]
        verbose_name_plural = "review strata"
        constraints = [
            models.CheckConstraint(
                condition=Q(drawn__lte=F("population")),
                name="review_stratum_drawn_of_population",
            )
        ]

    def __str__(self) -> str:
        return f"{self.drawn} of {self.population}"
