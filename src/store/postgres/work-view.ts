// `ensureWorkView` creates the view `work` of work-view.sql.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Db } from './row-cache.ts'

const WORK_VIEW = readFileSync(new URL('work-view.sql', import.meta.url), 'utf8').trim()

const VIEW_COMMENT = `one row for each event and lane; docs/operate/monitor.md (${hash('sha256', WORK_VIEW).slice(0, 16)})`

/**
 * A reader may lock the view for any length of time. Then the view stays as it is until a store is opened again, and no process
 * waits.
 */
const CREATE_VIEW = `do $make$ begin
  set local lock_timeout = '1s';
  begin
    ${WORK_VIEW};
  exception when invalid_table_definition then
    drop view work;
    ${WORK_VIEW};
  end;
  comment on view work is '${VIEW_COMMENT}';
exception when lock_not_available then null;
end $make$`

const FOUND = `select obj_description(to_regclass('work'), 'pg_class') is not distinct from $1`

/**
 * `ensureWorkView` runs inside the migration and also replaces the view of an older release. It returns whether it created the
 * view.
 */
export async function ensureWorkView(db: Db, script: (sql: string) => Promise<void>): Promise<boolean> {
  const [found] = await db.query(FOUND, [VIEW_COMMENT])
  if (found?.[0] === true) return false
  await script(CREATE_VIEW)
  return true
}
