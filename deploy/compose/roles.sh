# Run by PostgreSQL's image once, when the database's volume is empty: the roles and the
# database of docs/how-to/run-and-deploy.md. None of them is a superuser.
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv owner_password NESCIO_OWNER_PASSWORD
\getenv web_password NESCIO_WEB_PASSWORD
CREATE ROLE nescio_app NOLOGIN;
-- Owns the tables: migrations, and workers, which build vector indexes.
CREATE ROLE nescio LOGIN PASSWORD :'owner_password' IN ROLE nescio_app;
-- Owns nothing; PgBouncer passes on no settings of a connection, so the role has them.
CREATE ROLE nescio_web LOGIN PASSWORD :'web_password' IN ROLE nescio_app;
ALTER ROLE nescio_web SET hnsw.iterative_scan = 'relaxed_order';
ALTER ROLE nescio_web SET hnsw.ef_search = 100;
CREATE DATABASE nescio OWNER nescio;
\connect nescio
CREATE EXTENSION vector;
SQL
