#!/bin/sh
# Restores a dump of backup.sh beside the present database, then lets the two change names:
# if anything fails, nothing has changed, and the old one stays as nescio_before.
#
#   restore.sh FILE    in the database's container; nothing else may be connected
set -eu
export PGUSER="${POSTGRES_USER:-postgres}" PGDATABASE=postgres

if [ "$(psql --no-align --tuples-only \
        --command "SELECT 1 FROM pg_database WHERE datname = 'nescio_before'")" ]; then
    echo "restore.sh: the database nescio_before of an earlier restore is there." \
        "Drop it when it is no longer needed: dropdb --username $PGUSER nescio_before" >&2
    exit 1
fi
dropdb --if-exists nescio_restored
createdb --template template0 --owner nescio nescio_restored
pg_restore --exit-on-error --dbname nescio_restored "$1"
vacuumdb --quiet --analyze-only --dbname nescio_restored
psql --quiet --set ON_ERROR_STOP=1 --single-transaction --file - <<'SQL'
ALTER DATABASE nescio RENAME TO nescio_before;
ALTER DATABASE nescio_restored RENAME TO nescio;
SQL
echo "$1 is restored. The database before it is nescio_before."
