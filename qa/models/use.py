from django.db import models

from .answer import Answer


class UseCursor(models.Model):
    """How far the evidence is counted into the entries' uses; there is one row."""

    counted_to = models.BigIntegerField(
        default=0, help_text="Evidence up to this id is counted."
    )
    noted_to = models.BigIntegerField(
        default=0, help_text="The largest id that was seen last."
    )
    noted_before = models.BigIntegerField(
        null=True,
        help_text="A transaction that began later: once all before it have ended, no "
        "id up to `noted_to` can appear any more.",
    )

    def __str__(self) -> str:
        return f"counted to {self.counted_to}"


class VoteChange(models.Model):
    """A vote given, changed or taken back that is not yet added to the entries' counts.

    Written by a trigger on votes, deleted with the addition.
    """

    answer = models.ForeignKey(
        Answer,
        on_delete=models.DO_NOTHING,
        db_constraint=False,  # an answer may be deleted with its votes
        db_index=False,
        related_name="+",
    )
    up = models.SmallIntegerField(help_text="1, 0 or -1.")
    down = models.SmallIntegerField(help_text="1, 0 or -1.")

    def __str__(self) -> str:
        return f"votes of answer {self.answer_id}: {self.up:+d} up, {self.down:+d} down"
