import django.db.models.deletion
from django.db import migrations, models

INDEX = "kb_revision_entry_id_14598233"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("kb", "0012_revision_audience"),
    ]

    operations = [
        # By Django's own the foreign key would be made again too, reading every row under
        # a lock.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="revision",
                    name="entry",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="kb.entry",
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX}"
                    " ON kb_revision (entry_id)",
                )
            ],
        ),
    ]
