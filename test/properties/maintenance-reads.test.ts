// L23 on a store with large bodies: maintenance runs every few seconds, and mostly nothing is old. Then it reads no body.
import { expect, it } from 'vitest'
import { NEVER } from '../../src/clock.ts'
import type { EventToStore, RetentionPolicy } from '../../src/store/contract/index.ts'
import { MemoryTables } from '../../src/store/memory/store.ts'
import { expireEvents, INITIAL_EVENT_CURSOR } from '../../src/store/core/expire-events.ts'
import type { EventRow } from '../../src/store/core/tables.ts'
import { CommitContext } from '../../src/store/core/commit-context.ts'

const HOUR = 3_600_000
const POLICY: RetentionPolicy = { events: { '': HOUR }, runs: {}, deadLetters: NEVER, bytes: NEVER, lanesPerTenant: {} }
const BODY = new Uint8Array(1_000)

class Watched extends MemoryTables {
  /** The number of rows that were read with their bodies. */
  read = 0

  constructor() {
    super()
    const oldest = this.events.findOldest.bind(this.events)
    this.events.findOldest = (after: number, n: number): readonly EventRow[] => {
      const rows = oldest(after, n)
      this.read += rows.length
      return rows
    }
    this.events.findArrivals = oldest
  }

  /** An event that was done long ago. */
  stored(id: string, arrived: number): void {
    const name = { id, identity: id, source: 's', type: 't', tenant: '', subject: '', attributes: '' }
    const event: EventToStore = {
      ...name,
      time: 0,
      dedupeFor: 0,
      request: BODY,
      body: BODY,
      placements: [],
      unrouted: [],
    }
    this.events.insert(event, { arrived, dedupeUntil: arrived, lanes: [], skips: [] })
  }
}

function scene(...arrived: readonly number[]): Watched {
  const tables = new Watched()
  for (const [n, at] of arrived.entries()) tables.stored(`e${n}`, at)
  return tables
}

it('reads no body while nothing is old', () => {
  const tables = scene(10, 20, 30)
  const { gone, more } = expireEvents(new CommitContext(tables, HOUR), POLICY, INITIAL_EVENT_CURSOR, 500)
  expect({ gone, more, read: tables.read }).toEqual({ gone: 0, more: false, read: 0 })
})

it('reads what is old, and continues as long as a page was full', () => {
  const tables = scene(10, 20, 30, HOUR)
  const first = expireEvents(new CommitContext(tables, HOUR + 30), POLICY, INITIAL_EVENT_CURSOR, 2)
  expect({ gone: first.gone, more: first.more, read: tables.read }).toEqual({ gone: 2, more: true, read: 2 })
  const second = expireEvents(new CommitContext(tables, HOUR + 30), POLICY, first.after, 2)
  expect({ gone: second.gone, more: second.more, read: tables.read }).toEqual({ gone: 1, more: false, read: 3 })
})

it('above the byte limit it deletes young events too, and no more than necessary', () => {
  const tables = scene(10, 20, 30)
  const over = { ...POLICY, bytes: tables.records.stats(HOUR).bytes - 3_000 }
  const { gone } = expireEvents(new CommitContext(tables, HOUR), over, INITIAL_EVENT_CURSOR, 500)
  expect({ gone, left: tables.events.all.size }).toEqual({ gone: 2, left: 1 })
})
