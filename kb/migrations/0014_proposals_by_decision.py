from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("kb", "0013_revisions_without_a_second_index")]

    operations = [
        AddIndexConcurrently(
            model_name="proposal",
            index=models.Index(
                models.F("decided_at").desc(nulls_first=True),
                models.F("confidence").desc(),
                models.F("id").desc(),
                name="proposal_by_decision",
            ),
        ),
    ]
