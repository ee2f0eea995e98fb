from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("qa", "0019_notices_leave_by_events")]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="erased_at",
            field=models.DateTimeField(
                blank=True, help_text="When its words were erased.", null=True
            ),
        )
    ]
