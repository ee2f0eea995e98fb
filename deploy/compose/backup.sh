#!/bin/sh
# Keeps dumps of the database in the present directory: one each NESCIO_BACKUP_HOURS, none
# older than NESCIO_BACKUP_KEEP_DAYS. PGHOST, PGUSER and the like say of which database.
#
#   backup.sh          makes a dump whenever the last one is too old, until it is stopped
#   backup.sh once     makes one now
#   backup.sh check    fails where the last one is over an hour late
set -eu
umask 077

has_one_younger_than() {
    find . -maxdepth 1 -type f -name 'nescio-*.dump' -mmin "-$1" | grep -q .
}

dump() {
    # One at a time: the next removes what a broken one left.
    exec 9> .lock
    flock 9
    name="nescio-$(date -u +%Y%m%dT%H%M%SZ).dump"
    rm -f nescio-*.part
    pg_dump --format custom --file "$name.part"
    pg_restore --list "$name.part" > /dev/null
    mv "$name.part" "$name"
    echo "$name: $(du -h "$name" | cut -f1)"
    # Only after a new one is complete, and never that one.
    find . -maxdepth 1 -type f -name 'nescio-*.dump' ! -name "$name" \
        -mmin "+$((NESCIO_BACKUP_KEEP_DAYS * 1440))" -delete
    exec 9>&-
}

interval=$((NESCIO_BACKUP_HOURS * 60))
case "${1:-}" in
    once) dump ;;
    check) has_one_younger_than $((interval + 60)) ;;
    "")
        while true; do
            has_one_younger_than "$interval" || dump
            sleep 60
        done
        ;;
    *) echo "backup.sh: once, check or nothing, not $1." >&2; exit 2 ;;
esac
