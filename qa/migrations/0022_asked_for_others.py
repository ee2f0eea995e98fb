from django.db import migrations, models

# Beside who changed whose access, accounts/migrations/audit.sql: whose access was used.
WATCH = """
CREATE FUNCTION qa_audit_service() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    VALUES (
        clock_timestamp(), NEW.service, current_setting('application_name'),
        'question for', 'insert',
        coalesce((SELECT username FROM auth_user WHERE id = NEW.asker_id), ''),
        jsonb_build_object('answer', jsonb_build_array(NULL, NEW.id))
    );
    RETURN NULL;
END $$;
CREATE TRIGGER audit_service AFTER INSERT ON qa_answer FOR EACH ROW
    WHEN (NEW.service <> '') EXECUTE FUNCTION qa_audit_service();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_audit_entries"),
        ("qa", "0021_conversations"),
    ]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="service",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The service account that asked for the asker; empty: they asked.",
                max_length=150,
            ),
        ),
        migrations.RunSQL(WATCH, "DROP FUNCTION qa_audit_service() CASCADE"),
    ]
