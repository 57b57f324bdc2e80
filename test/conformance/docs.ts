// `writeDocs` stores all documents or none, each against the revision at which it was read, with a chained audit trail.
import assert from 'node:assert/strict'
import { AUDIT_HEAD, parseAuditHead } from '../../src/store/contract/records.ts'
import type { AuditRecord, Doc, Store, WriteDocsCall, WriteDocsReply } from '../../src/store/contract/index.ts'
import { assertSingle, sorted, type ConformanceStage, type Suite } from './stage.ts'
import { encodeText } from './builders.ts'

interface Write {
  readonly id: string
  readonly text?: string
  readonly ifRev?: number
  readonly kind?: string
}

async function write(t: ConformanceStage, writes: readonly Write[], what?: string): Promise<WriteDocsReply> {
  const call: WriteDocsCall = {
    writes: writes.map(({ id, text, ifRev = 0, kind = 'flow' }) => ({
      kind,
      id,
      ifRev,
      body: text === undefined ? undefined : encodeText(text),
    })),
    raiseRoutes: false,
    audit: what === undefined ? undefined : { who: 'ada', what },
  }
  return t.store.writeDocs(call)
}

async function rev(t: ConformanceStage, ...writes: readonly Write[]): Promise<number> {
  const reply = await write(t, writes)
  assert.ok(reply.kind === 'written')
  return assertSingle(reply.revs)
}

async function read(
  t: ConformanceStage,
  ids: readonly string[] | undefined,
  after = '',
  n = 100,
): Promise<readonly Doc[]> {
  return (await t.store.readDocs({ kind: 'flow', ids, after, n })).docs
}

const texts = (docs: readonly Doc[]): readonly string[] =>
  docs.map((doc) => `${doc.id}=${Buffer.from(doc.body).toString()}`)

async function chained(store: Store, entries: readonly string[]): Promise<readonly AuditRecord[]> {
  for (const what of entries) await store.writeDocs({ writes: [], raiseRoutes: false, audit: { who: 'ada', what } })
  return (await store.find({ kind: 'audit', filter: {}, cursor: '', n: 100 })).items
}

export const docs: Suite = (rule) => {
  rule('a document is written, read and found by its kind', async (t) => {
    const first = await rev(t, { id: 'a', text: 'one' })
    await rev(t, { id: 'a', text: 'another kind', kind: 'endpoint' })
    const [doc] = await read(t, ['a'])
    assert.deepEqual([doc?.kind, doc?.id, doc?.rev], ['flow', 'a', first])
    assert.deepEqual(texts(await read(t, ['a'])), ['a=one'])
  })

  rule('a write names the revision it was read at, and a stale one conflicts and changes nothing', async (t) => {
    const first = await rev(t, { id: 'a', text: 'one' })
    const second = await rev(t, { id: 'a', text: 'two', ifRev: first })
    assert.ok(second > first)
    const stale = await write(t, [{ id: 'a', text: 'three', ifRev: first }])
    assert.deepEqual([stale.kind, stale.kind === 'conflict' && [stale.at, stale.rev]], ['conflict', [0, second]])
    assert.deepEqual(texts(await read(t, ['a'])), ['a=two'])
  })

  rule('revision 0 means that it must not exist yet', async (t) => {
    const first = await rev(t, { id: 'a', text: 'one' })
    const again = await write(t, [{ id: 'a', text: 'two' }])
    assert.deepEqual(again.kind === 'conflict' && [again.at, again.rev], [0, first])
    const absent = await write(t, [{ id: 'b', text: 'two', ifRev: first }])
    assert.deepEqual(absent.kind === 'conflict' && [absent.at, absent.rev], [0, 0])
  })

  rule('all or none: one conflict undoes the whole write', async (t) => {
    const first = await rev(t, { id: 'a', text: 'one' })
    const reply = await write(t, [
      { id: 'b', text: 'new' },
      { id: 'a', text: 'two', ifRev: first + 1 },
      { id: 'c', text: 'new' },
    ])
    assert.deepEqual(reply.kind === 'conflict' && [reply.at, reply.rev], [1, first])
    assert.deepEqual(texts(await read(t, ['a', 'b', 'c'])), ['a=one'])
  })

  rule('several documents are written at once, each with its revision', async (t) => {
    const reply = await write(t, [
      { id: 'a', text: '1' },
      { id: 'b', text: '2' },
    ])
    assert.ok(reply.kind === 'written')
    const found = await read(t, ['a', 'b'])
    assert.deepEqual(sorted(found.map((doc) => doc.rev)), sorted(reply.revs))
    assert.deepEqual(sorted(texts(found)), ['a=1', 'b=2'])
  })

  rule('a document is removed by its revision, and a new one gets an unused revision', async (t) => {
    const first = await rev(t, { id: 'a', text: 'one' })
    await write(t, [
      { id: 'b', text: 'stays' },
      { kind: 'endpoint', id: 'a', text: 'stays' },
    ])
    assert.equal((await write(t, [{ id: 'a', ifRev: first + 7 }])).kind, 'conflict')
    assert.equal((await write(t, [{ id: 'a', ifRev: first }])).kind, 'written')
    assert.deepEqual(texts(await read(t, ['a', 'b'])), ['b=stays'])
    assert.equal((await t.store.readDocs({ kind: 'endpoint', ids: ['a'], after: '', n: 1 })).docs.length, 1)
    const anew = await rev(t, { id: 'a', text: 'two' })
    assert.notEqual(anew, first)
    assert.equal((await write(t, [{ id: 'a', text: 'stale', ifRev: first }])).kind, 'conflict')
  })

  rule('documents are read in pages, in the order of their ids', async (t) => {
    const ids = Array.from({ length: 7 }, (_, n) => `id${n}`)
    await write(
      t,
      ids.toReversed().map((id) => ({ id, text: id })),
    )
    const seen: string[] = []
    for (let after: string | undefined = ''; after !== undefined;) {
      const page: Awaited<ReturnType<Store['readDocs']>> = await t.store.readDocs({
        kind: 'flow',
        ids: undefined,
        after,
        n: 3,
      })
      assert.ok(page.docs.length <= 3)
      seen.push(...page.docs.map((doc) => doc.id))
      after = page.next
    }
    assert.deepEqual(seen, ids)
  })

  rule('missing documents are left out', async (t) => {
    await rev(t, { id: 'a', text: 'one' })
    assert.deepEqual(texts(await read(t, ['nobody', 'a'])), ['a=one'])
  })

  rule('the audit entry is part of the write: with it when it is written, without it when it conflicts', async (t) => {
    await write(t, [{ id: 'a', text: 'one' }], 'made a')
    t.clock.advance(1_000)
    await write(t, [{ id: 'a', text: 'two' }], 'failed')
    await write(t, [{ id: 'b', text: 'two' }], 'made b')
    const entries = await t.findAll('audit', {}, 1)
    assert.deepEqual(
      entries.map(({ who, what }) => `${who} ${what}`),
      ['ada made b', 'ada made a'],
    )
    assert.equal(entries[0]?.at, t.clock.now())
    assert.ok((entries[0]?.id ?? 0) > (entries[1]?.id ?? 0))
    const { item } = await t.store.get({ kind: 'audit', id: String(entries[0]?.id) })
    assert.deepEqual(item, entries[0])
  })

  rule('the newest audit entry is also a document of the same commit that only the store writes', async (t) => {
    const head = async (): Promise<readonly Doc[]> =>
      (await t.store.readDocs({ kind: AUDIT_HEAD.kind, ids: [AUDIT_HEAD.id], after: '', n: 1 })).docs
    assert.deepEqual(await head(), [])
    await chained(t.store, ['first'])
    const [newest] = await chained(t.store, ['second'])
    const [doc] = await head()
    assert.deepEqual(parseAuditHead(doc), { id: newest?.id, chain: newest?.chain })
    for (const text of ['{}', undefined]) {
      const mine = {
        kind: AUDIT_HEAD.kind,
        id: AUDIT_HEAD.id,
        ifRev: doc?.rev ?? 0,
        ...(text !== undefined && { text }),
      }
      assert.equal((await write(t, [{ id: 'b', text: 'new' }, mine], 'took it over')).kind, 'conflict')
    }
    assert.deepEqual(await head(), [doc])
    assert.deepEqual(await read(t, ['b']), [])
    assert.deepEqual((await t.store.readDocs({ kind: 'flow', ids: undefined, after: '', n: 9 })).docs, [])
  })

  rule('the audit chains: an entry depends on all before it', async (t) => {
    const here = await chained(t.store, ['first', 'same', 'same'])
    const there = await chained(await t.openEmptyStore(), ['other', 'same', 'same'])
    assert.equal(new Set(here.map((entry) => entry.chain)).size, 3)
    assert.deepEqual(
      here.map((entry) => entry.what),
      ['same', 'same', 'first'],
    )
    for (const [n, entry] of here.entries()) assert.notEqual(entry.chain, there[n]?.chain)
  })
}
