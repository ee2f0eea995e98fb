import django.db.models.deletion
import pgvector.django.halfvec
from django.db import migrations, models

# MAIN keeps a vector inside its row, as in the table that it is rounded from. What is
# deleted there, by whatever statement, is deleted here.
FORWARD = """
ALTER TABLE kb_halfvector
    ALTER COLUMN half SET STORAGE MAIN,
    ADD CONSTRAINT half_vector_of_embedding FOREIGN KEY (embedding_id)
        REFERENCES kb_entryembedding (id) ON DELETE CASCADE;

CREATE FUNCTION kb_keep_half_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO kb_halfvector (embedding_id, entry_id, model_id, half)
    SELECT id, entry_id, model_id, vector::halfvec FROM written
    ON CONFLICT (embedding_id) DO UPDATE
        SET entry_id = excluded.entry_id, model_id = excluded.model_id,
            half = excluded.half;
    RETURN NULL;
END
$$;

CREATE TRIGGER keep_inserted_half_vectors AFTER INSERT ON kb_entryembedding
    REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION kb_keep_half_vectors();
CREATE TRIGGER keep_updated_half_vectors AFTER UPDATE ON kb_entryembedding
    REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION kb_keep_half_vectors();

INSERT INTO kb_halfvector (embedding_id, entry_id, model_id, half)
SELECT id, entry_id, model_id, vector::halfvec FROM kb_entryembedding;
"""

BACKWARD = """
DROP TRIGGER keep_updated_half_vectors ON kb_entryembedding;
DROP TRIGGER keep_inserted_half_vectors ON kb_entryembedding;
DROP FUNCTION kb_keep_half_vectors();
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0005_list_entries_newest_first")]

    operations = [
        migrations.CreateModel(
            name="HalfVector",
            fields=[
                (
                    "embedding",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="kb.entryembedding",
                    ),
                ),
                ("entry_id", models.BigIntegerField()),
                ("model_id", models.BigIntegerField()),
                ("half", pgvector.django.halfvec.HalfVectorField()),
            ],
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
