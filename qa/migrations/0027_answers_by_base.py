from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("qa", "0026_lower_entry_thresholds")]

    operations = [
        AddIndexConcurrently(
            model_name="answer",
            index=models.Index(
                fields=["knowledge_base", "-created_at"],
                include=["channel", "outcome"],
                name="answer_by_base",
            ),
        ),
    ]
