from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("kb", "0017_imported_and_denied_wordings")]

    operations = [
        AddIndexConcurrently(
            model_name="entry",
            index=models.Index(
                condition=models.Q(("valid_until__isnull", False)),
                fields=["knowledge_base", "valid_until"],
                name="entry_ends",
            ),
        ),
    ]
