from django.db import migrations

# Distances are compared with thresholds for unit vectors, and a zero vector has none.
# MAIN keeps a vector of up to about 2,000 dimensions inside its row, where exact search
# reads it without a look-up in a second table; a longer one is still moved out.
FORWARD = """
ALTER TABLE kb_entryembedding
    ALTER COLUMN vector SET STORAGE MAIN,
    ADD CONSTRAINT entry_embedding_is_unit
        CHECK (vector_norm(vector) BETWEEN 0.999 AND 1.001);
"""

BACKWARD = """
ALTER TABLE kb_entryembedding
    ALTER COLUMN vector SET STORAGE EXTERNAL,
    DROP CONSTRAINT entry_embedding_is_unit;
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0003_cover_visibility")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
