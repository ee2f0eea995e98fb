from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def forget_resampled(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    """A bound over resampled groups promised nothing."""
    apps.get_model("qa", "Certificate").objects.update(group_bound=None)


class Migration(migrations.Migration):
    dependencies = [
        ("qa", "0010_reports_by_shown_reason"),
    ]

    operations = [
        migrations.AlterField(
            model_name="certificate",
            name="group_bound",
            field=models.FloatField(
                help_text="Upper bound on the risk over groups; null if given before it was held.",
                null=True,
                validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
            ),
        ),
        migrations.RunPython(forget_resampled, migrations.RunPython.noop),
    ]
