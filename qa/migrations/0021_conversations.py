from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("qa", "0020_erased_answers")]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="conversation",
            field=models.UUIDField(
                blank=True,
                help_text="Id of the conversation's first answer; empty for a question of its own.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="answer",
            name="typed",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="What was typed, where a follow-up was asked as another question.",
            ),
        ),
        # Nothing is in it yet, so that building it holds nobody up.
        migrations.AddIndex(
            model_name="answer",
            index=models.Index(
                condition=models.Q(("conversation__isnull", False)),
                fields=["conversation", "created_at"],
                name="answer_by_conversation",
            ),
        ),
    ]
