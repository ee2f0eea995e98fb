from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("qa", "0017_strata_by_certainty")]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="completeness_counts",
            field=models.BooleanField(
                default=False,
                help_text="A reviewed answer that is not complete counts as a false one. Off: correct and true to its evidence is enough.",
            ),
        ),
        migrations.AddField(
            model_name="policy",
            name="marked_evidence_counts",
            field=models.BooleanField(
                default=False,
                help_text="A reviewed answer that cites none of the evidence that the expert marked counts as a false one. Off: what is marked only says which entries answer.",
            ),
        ),
        migrations.AddField(
            model_name="review",
            name="falls_short",
            field=models.BooleanField(
                default=False,
                help_text="Whether the policy made it a false answer though it is correct and true to its evidence.",
            ),
        ),
    ]
