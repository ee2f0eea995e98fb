import django.db.models.deletion
from django.db import migrations, models

INDEX = "qa_answer_knowledge_base_id_d333d584"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("kb", "0011_entries_by_change"),
        ("qa", "0027_answers_by_base"),
    ]

    operations = [
        # By Django's own the foreign key would be made again too, reading every row under
        # a lock.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="answer",
                    name="knowledge_base",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX}"
                    " ON qa_answer (knowledge_base_id)",
                )
            ],
        ),
    ]
