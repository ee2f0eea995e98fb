-- What a plan says of an entry is seen with it, what it would make with the import. Plans
-- made before don't say whose text they copied: they are gone, and made again by whoever
-- wants to apply them.
DELETE FROM kb_plannedentry;

ALTER TABLE kb_plannedentry ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_plannedentry_entry ON kb_plannedentry USING (
    EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id)
    OR entry_id IS NULL AND EXISTS (SELECT FROM kb_import i WHERE i.id = import_run_id)
);

-- Who deletes an import, or an entry, need not see all that is planned: it goes with them.
ALTER TABLE kb_plannedentry
    ADD CONSTRAINT planned_entry_of_import FOREIGN KEY (import_run_id)
        REFERENCES kb_import (id) ON DELETE CASCADE,
    ADD CONSTRAINT planned_entry_of_entry FOREIGN KEY (entry_id)
        REFERENCES kb_entry (id) ON DELETE CASCADE;
