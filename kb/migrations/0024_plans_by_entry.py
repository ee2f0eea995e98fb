from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("kb", "0023_plans_of_entries")]

    operations = [
        AddIndexConcurrently(
            model_name="plannedentry",
            index=models.Index(fields=["entry"], name="planned_entry_by_entry"),
        ),
    ]
