from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("kb", "0011_entries_by_change")]

    operations = [
        AddIndexConcurrently(
            model_name="revision",
            index=models.Index(fields=["entry", "audience"], name="revision_audience"),
        ),
    ]
