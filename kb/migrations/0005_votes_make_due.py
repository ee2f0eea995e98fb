from pathlib import Path

from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least

KEEP = Path(__file__).with_name("votes_make_due.sql").read_text()
DOUBT = "        doubted_since = CASE WHEN NOT is_anew THEN doubted_since END,\n"


class Migration(migrations.Migration):
    dependencies = [
        ("kb", "0004_revisions_keep_their_audience"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="upkeep",
            name="doubted_since",
            field=models.DateTimeField(
                null=True,
                help_text="If verified: since when votes call it wrong or out of date.",
            ),
        ),
        # A generated column can not be changed: it is made again, and its indexes with it.
        migrations.RemoveIndex(model_name="upkeep", name="upkeep_queue"),
        migrations.RemoveIndex(model_name="upkeep", name="upkeep_due"),
        migrations.RemoveField(model_name="upkeep", name="due_at"),
        migrations.AddField(
            model_name="upkeep",
            name="due_at",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    models.When(
                        Q(waiting_since__isnull=True)
                        & Q(review_due__isnull=True)
                        & Q(expiry_notice_at__isnull=True)
                        & Q(doubted_since__isnull=True),
                        then=models.Value(None),
                    ),
                    default=Greatest(
                        Least(
                            F("waiting_since"),
                            F("review_due"),
                            F("expiry_notice_at"),
                            F("doubted_since"),
                        ),
                        F("postponed_until"),
                    ),
                ),
                output_field=models.DateTimeField(null=True),
            ),
        ),
        migrations.AddIndex(
            model_name="upkeep",
            index=models.Index(
                fields=["-uses", "due_at", "entry"],
                condition=Q(due_at__isnull=False),
                name="upkeep_queue",
            ),
        ),
        migrations.AddIndex(
            model_name="upkeep",
            index=models.Index(fields=["due_at"], name="upkeep_due"),
        ),
        migrations.AddIndex(
            model_name="upkeep",
            index=models.Index(
                fields=["doubted_since"],
                condition=Q(doubted_since__isnull=False),
                name="upkeep_doubted",
            ),
        ),
        migrations.RunSQL(KEEP, KEEP.replace(DOUBT, "")),
    ]
