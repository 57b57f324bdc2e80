-- Deprecates a version and publishes the news, in one transaction:
--   psql "$DATABASE_URL" -v component=NEOFORGE -v version=21.0.1 -v reason='crashes at start' -f deprecate.sql
with changed as (
  update neoforge_meta.versions set deprecated = :'reason'
  where component = :'component' and version = :'version' and deprecated is null
  returning *
)
select sluice.publish(
  'VERSION_DEPRECATED',
  details || jsonb_build_object('component', component, 'version', version, 'deprecated', deprecated),
  subject => component || '/' || version
)
from changed;
