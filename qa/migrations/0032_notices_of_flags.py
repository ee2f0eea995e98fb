from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("qa", "0031_reviews_change_days"),
    ]

    operations = [
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("reply", "An expert replied"),
                    ("answered", "Your question is answered now"),
                    ("doubted", "An entry of yours was voted down"),
                    ("flagged", "An entry was flagged as wrong or outdated"),
                ],
                max_length=8,
            ),
        ),
    ]
