from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial"), ("qa", "0009_own_knowledge_first")]

    operations = [
        migrations.RunSQL(
            [
                "UPDATE qa_evaluationresult result SET reason = answer.shown_reason"
                " FROM qa_answer answer"
                " WHERE answer.id = result.answer_id AND result.reason = 'not_entitled'",
                "UPDATE qa_evaluationresult SET reason = ''"
                " WHERE answer_id IS NULL AND reason = 'not_entitled'",
                # A count has no answer of its own to take the shown reason from.
                "UPDATE qa_evaluationrun SET report = replace(report::text,"
                """ '"reason": "not_entitled"', '"reason": ""')::jsonb"""
                """ WHERE report::text LIKE '%"reason": "not_entitled"%'""",
                "UPDATE jobs_job SET result = replace(result::text,"
                """ '"reason": "not_entitled"', '"reason": ""')::jsonb"""
                """ WHERE result::text LIKE '%"reason": "not_entitled"%'""",
            ],
            migrations.RunSQL.noop,
        ),
    ]
