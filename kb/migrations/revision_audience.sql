-- What an entry was is not opened with what it is: a revision is seen by who may see its
-- entry now and belongs to the audience that the revision itself was of. One whose audience
-- is gone, or was withheld from who exported it, is left to those who see all there is.
CREATE FUNCTION nescio_sees_all() RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    label constant text := current_setting('application_name');
BEGIN
    IF label LIKE 'nescio:user:%' THEN
        RETURN EXISTS (
            SELECT FROM auth_user u WHERE u.id = substr(label, 13)::bigint
                AND u.is_active AND u.is_superuser
        );
    END IF;
    RETURN label IN ('nescio:everything', 'nescio:owner');
END $$;

ALTER POLICY kb_revision_entry ON kb_revision USING (
    EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id)
    AND (audience_id = ANY ((SELECT nescio_audiences())::bigint[])
        OR (SELECT nescio_sees_all()))
);

-- Whether a revision may be read by somebody is asked without reading it: no word in it.
CREATE VIEW kb_revisionoutline AS
SELECT id, entry_id, number, audience_id FROM kb_revision;

-- A proposal says what its entry said first.
ALTER POLICY kb_proposal_entry ON kb_proposal USING (
    EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id)
    AND ((SELECT nescio_sees_all()) OR NOT EXISTS (
        SELECT FROM kb_revisionoutline r
        WHERE r.entry_id = kb_proposal.entry_id AND (r.audience_id IS NULL
            OR r.audience_id <> ALL ((SELECT nescio_audiences())::bigint[]))
    ))
);
