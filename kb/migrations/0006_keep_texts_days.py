import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("kb", "0005_votes_make_due")]

    operations = [
        migrations.AddField(
            model_name="knowledgebase",
            name="keep_texts_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Days after which the words of questions, answers and comments on them are erased each night; empty: never. Counts and grades stay.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(3650),
                ],
                verbose_name="keep questions",
            ),
        )
    ]
