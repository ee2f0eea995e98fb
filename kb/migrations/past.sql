-- What was, for questions as of a moment: what the tables of the present forget. Revisions
-- say what an entry was; here are the names of documents and sections, the conflicts, and
-- the vectors of texts that were since changed.

-- FORMER ROWS
-- A row as it was until it changed; NULL until it was there. Only who sees all there is
-- reads them: names are in them. Kept are the columns that a trigger names: no more than
-- what is read again. One that names none keeps the whole row.
ALTER TABLE kb_formerrow ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_formerrow_all ON kb_formerrow USING ((SELECT nescio_sees_all()));

-- With the rights of the tables' owner, whoever writes.
CREATE FUNCTION kb_keep_former_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO kb_formerrow (source, row_id, was, until)
    SELECT TG_TABLE_NAME, coalesce(OLD.id, NEW.id),
        jsonb_object_agg(key, value), clock_timestamp()
    FROM jsonb_each(to_jsonb(OLD)) WHERE TG_NARGS = 0 OR key = ANY (TG_ARGV);
    RETURN NULL;
END $$;

CREATE TRIGGER keep_former_row AFTER UPDATE ON kb_document FOR EACH ROW
    WHEN ((OLD.title, OLD.audience_id) IS DISTINCT FROM (NEW.title, NEW.audience_id))
    EXECUTE FUNCTION kb_keep_former_row('title', 'audience_id');
CREATE TRIGGER keep_deleted_row AFTER DELETE ON kb_document FOR EACH ROW
    EXECUTE FUNCTION kb_keep_former_row('title', 'audience_id');
CREATE TRIGGER keep_former_row AFTER UPDATE ON kb_section FOR EACH ROW
    WHEN ((OLD.heading, OLD.document_id) IS DISTINCT FROM (NEW.heading, NEW.document_id))
    EXECUTE FUNCTION kb_keep_former_row('heading', 'document_id');
CREATE TRIGGER keep_deleted_row AFTER DELETE ON kb_section FOR EACH ROW
    EXECUTE FUNCTION kb_keep_former_row('heading', 'document_id');
CREATE TRIGGER keep_former_row AFTER UPDATE ON kb_conflict FOR EACH ROW
    WHEN ((OLD.kind, OLD.score, OLD.state) IS DISTINCT FROM (NEW.kind, NEW.score, NEW.state))
    EXECUTE FUNCTION kb_keep_former_row(
        'id', 'first_id', 'second_id', 'kind', 'state', 'score', 'reasons');

-- A conflict goes with an entry that is erased, and what was kept of it too.
CREATE FUNCTION kb_forget_conflict() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM kb_formerrow WHERE source = 'kb_conflict' AND row_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_former_rows AFTER DELETE ON kb_conflict FOR EACH ROW
    EXECUTE FUNCTION kb_forget_conflict();

-- FORMER VECTORS
-- By the digest of what is embedded: a text that comes back finds its vectors again. They
-- go with their entry, by whatever statement. A retired model's are not kept; what is
-- missing under the active one is made again.
ALTER TABLE kb_formervector
    ADD CONSTRAINT former_vector_of_entry FOREIGN KEY (entry_id)
        REFERENCES kb_entry (id) ON DELETE CASCADE,
    ADD CONSTRAINT former_vector_of_model FOREIGN KEY (model_id)
        REFERENCES kb_embeddingmodel (id) ON DELETE CASCADE;

CREATE FUNCTION kb_keep_former_vector() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO kb_formervector (entry_id, model_id, part, vector, text_sha256)
    SELECT OLD.entry_id, OLD.model_id, OLD.part, OLD.vector, OLD.text_sha256
    WHERE EXISTS (SELECT FROM kb_entry WHERE id = OLD.entry_id)
        AND EXISTS (SELECT FROM kb_embeddingmodel WHERE id = OLD.model_id AND state = 'active')
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER keep_former_vector AFTER UPDATE ON kb_entryembedding FOR EACH ROW
    WHEN (OLD.text_sha256 <> NEW.text_sha256) EXECUTE FUNCTION kb_keep_former_vector();
CREATE TRIGGER keep_deleted_vector AFTER DELETE ON kb_entryembedding FOR EACH ROW
    EXECUTE FUNCTION kb_keep_former_vector();

-- THE REVISIONS OF A MOMENT
-- Of each entry of a knowledge base the revision that counted, with the digest of what was
-- embedded of it, and who may see the entry now. Of whoever asks, for why nothing could be
-- said is found beyond what they may see (kb/search/related.py); no word of an entry is in
-- it, and a title only for readers of its document, then and now.
CREATE FUNCTION kb_past(base bigint, moment timestamptz) RETURNS TABLE (
    id bigint, revision_id bigint, number integer, audience_id bigint, audience_now bigint,
    state text, confidence float8, valid_until timestamptz, digest text,
    document_audience bigint, title text, heading text
)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 50000 SET search_path FROM CURRENT AS $$
WITH held AS (
    SELECT DISTINCT ON (r.entry_id) r.*, e.audience_id AS audience_now
    FROM kb_entry e JOIN kb_revision r ON r.entry_id = e.id
    WHERE e.knowledge_base_id = base AND r.created_at <= moment
    ORDER BY r.entry_id, r.number DESC
),
former AS MATERIALIZED (
    SELECT DISTINCT ON (f.source, f.row_id) f.source, f.row_id, f.was
    FROM kb_formerrow f
    WHERE f.source IN ('kb_document', 'kb_section') AND f.until > moment
    ORDER BY f.source, f.row_id, f.until, f.id
),
document AS (
    SELECT coalesce(d.id, f.row_id) AS id,
        coalesce(f.was ->> 'title', d.title) AS title,
        coalesce((f.was ->> 'audience_id')::bigint, d.audience_id) AS audience_id,
        d.audience_id AS audience_now
    FROM kb_document d
    FULL JOIN (SELECT * FROM former WHERE source = 'kb_document') f ON f.row_id = d.id
),
section AS (
    SELECT coalesce(s.id, f.row_id) AS id,
        coalesce(f.was ->> 'heading', s.heading) AS heading,
        coalesce((f.was ->> 'document_id')::bigint, s.document_id) AS document_id
    FROM kb_section s
    FULL JOIN (SELECT * FROM former WHERE source = 'kb_section') f ON f.row_id = s.id
),
reader AS MATERIALIZED (
    SELECT nescio_audiences() AS audiences, nescio_sees_all() AS sees_all
)
SELECT h.entry_id, h.id, h.number, h.audience_id, h.audience_now, h.state, h.confidence,
    h.valid_until,
    encode(sha256(convert_to(concat_ws(E'\n',
        CASE WHEN d.audience_id = h.audience_id THEN d.title ELSE '' END,
        CASE WHEN d.audience_id = h.audience_id AND s.document_id = d.id
            THEN s.heading ELSE '' END,
        h.question, h.text), 'UTF8')), 'hex'),
    d.audience_id,
    CASE WHEN is_read THEN d.title END,
    CASE WHEN is_read THEN s.heading END
FROM held h
LEFT JOIN document d ON d.id = h.document_id
LEFT JOIN section s ON s.id = h.section_id
CROSS JOIN reader
CROSS JOIN LATERAL (
    SELECT reader.sees_all OR d.audience_id = ANY (reader.audiences)
        AND d.audience_now = ANY (reader.audiences) AS is_read
) may
$$;
