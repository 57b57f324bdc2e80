// Somebody with a way into the file takes entries out of the audit log: where it still shows, and where only a head that was
// kept elsewhere tells.
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

test('nothing was done to it', async () => {
  expect(await (await tampered(''))()).toMatchObject({ kind: 'whole', entries: 4, head: { id: 4 } })
})

const CUT = 'delete from audit where id > 2;'
const HEAD = `delete from docs where kind = 'audit-head';`

test.each([
  ['the newest', CUT, { why: 'cut', at: 3, entries: 2 }],
  ['all of them', 'delete from audit;', { why: 'cut', at: 1, entries: 0 }],
  ['the newest with the head', CUT + HEAD, { why: 'cut', at: 3, entries: 2 }],
  ['one in the middle', 'delete from audit where id = 2;', { why: 'changed', at: 3 }],
  ['the first', 'delete from audit where id = 1;', { why: 'changed', at: 2 }],
])('without %s it is broken', async (_name, sql, broken) => {
  expect(await (await tampered(sql))()).toMatchObject({ kind: 'broken', ...broken })
})

test.each([
  ['the newest', CUT, 5],
  ['all of them', 'delete from audit;', 5],
  ['the newest with the head', CUT + HEAD, 3],
])('without %s it stays broken, whatever is written afterwards', async (_name, sql, at) => {
  const verify = await tampered(sql, ['five', 'six'])
  expect(await verify()).toMatchObject({ kind: 'broken', why: 'changed', at })
})

test('all of it written anew shows to nobody but who kept a head elsewhere', async () => {
  const whole = await (await tampered(''))()
  const verify = await tampered(`delete from audit; ${HEAD}`, ['one', 'two', 'three', 'four'])
  expect(await verify()).toMatchObject({ kind: 'whole', entries: 4 })
  const known = whole.kind === 'whole' ? whole.head?.chain : undefined
  expect(await verify(known)).toEqual({ kind: 'broken', why: 'unknown', at: 0, entries: 4 })
})
