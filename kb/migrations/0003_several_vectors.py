from django.db import migrations, models


class Migration(migrations.Migration):
    """Let an entry have several vectors.

    Those there are stay in use as the first of each entry. Their digests fit no longer,
    so that the next check of the vectors has the rest made in the background.
    """

    dependencies = [("kb", "0002_audit_audiences")]

    operations = [
        migrations.RemoveConstraint("entryembedding", "entry_embedding_unique"),
        migrations.AddField(
            "entryembedding",
            "part",
            models.PositiveSmallIntegerField(default=1, db_default=1),
        ),
        migrations.AlterField(
            "entryembedding",
            "text_sha256",
            models.CharField(
                help_text="Digest of all that is embedded of the entry, to detect a stale vector.",
                max_length=64,
            ),
        ),
        migrations.AddConstraint(
            "entryembedding",
            models.UniqueConstraint(
                fields=["entry", "model", "part"], name="entry_embedding_unique"
            ),
        ),
    ]
