// Somebody with access to the file removes entries from the audit log. `verify` detects this, except where only a head that was
// stored elsewhere can show it.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/index.ts'
import { Audit, type AuditVerification } from '../../src/admin/audit.ts'
import { ownFolder } from '../temporary-folder.ts'

async function tampered(
  sql: string,
  more: readonly string[] = [],
): Promise<(known?: string) => Promise<AuditVerification>> {
  const folder = ownFolder()
  const file = join(folder, 'sluice.db')
  const written = await openStore(`sqlite:${file}`)
  for (const what of ['one', 'two', 'three', 'four']) await new Audit(async () => written).write('ada', what)
  await written.close()
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
  const store = await openStore(`sqlite:${file}`)
  onTestFinished(() => store.close())
  const audit = new Audit(async () => store)
  for (const what of more) await audit.write('ada', what)
  return (known) => audit.verify(known)
}

test('an untouched log is whole', async () => {
  expect(await (await tampered(''))()).toMatchObject({ kind: 'whole', entries: 4, head: { id: 4 } })
})

const CUT = 'delete from audit where id > 2;'
const HEAD = `delete from docs where kind = 'audit-head';`

test.each([
  ['the newest entries', CUT, { why: 'cut', at: 3, entries: 2 }],
  ['any entry', 'delete from audit;', { why: 'cut', at: 1, entries: 0 }],
  ['the newest entries and the head', CUT + HEAD, { why: 'cut', at: 3, entries: 2 }],
  ['an entry in the middle', 'delete from audit where id = 2;', { why: 'changed', at: 3 }],
  ['the first entry', 'delete from audit where id = 1;', { why: 'changed', at: 2 }],
])('a log without %s is broken', async (_name, sql, broken) => {
  expect(await (await tampered(sql))()).toMatchObject({ kind: 'broken', ...broken })
})

test.each([
  ['the newest entries', CUT, 5],
  ['any entry', 'delete from audit;', 5],
  ['the newest entries and the head', CUT + HEAD, 3],
])('a log without %s stays broken after further entries', async (_name, sql, at) => {
  const verify = await tampered(sql, ['five', 'six'])
  expect(await verify()).toMatchObject({ kind: 'broken', why: 'changed', at })
})

test('a log that was rewritten completely is only detected with a head that was stored elsewhere', async () => {
  const whole = await (await tampered(''))()
  const verify = await tampered(`delete from audit; ${HEAD}`, ['one', 'two', 'three', 'four'])
  expect(await verify()).toMatchObject({ kind: 'whole', entries: 4 })
  const known = whole.kind === 'whole' ? whole.head?.chain : undefined
  expect(await verify(known)).toEqual({ kind: 'broken', why: 'unknown', at: 0, entries: 4 })
})
