// The small tables of the memory store hold permits, pauses, documents and the like.
import type { Millis } from '../../clock.ts'
import type { Pressure } from '../../model/place.ts'
import type { AuditRecord, Doc } from '../contract/index.ts'
import type { DocTable, PauseRow, ProcessRow, SmallTables } from '../core/tables.ts'

export class MemorySmallTables implements SmallTables {
  readonly pauses: Map<string, PauseRow> = new Map()
  readonly #processes = new Map<string, ProcessRow>()
  readonly #permits = new Map<string, Map<string, { n: number; until: Millis }>>()
  readonly #pressure = new Map<string, Pressure>()
  readonly #replays = new Map<string, Millis>()

  getProcess(id: string): ProcessRow | undefined {
    return this.#processes.get(id)
  }

  putProcess(id: string, row: ProcessRow): void {
    this.#processes.set(id, row)
  }

  forgetProcesses(before: Millis): void {
    for (const [id, row] of this.#processes) if (row.at <= before) this.#processes.delete(id)
  }

  findPermits(name: string): readonly { process: string; n: number; until: Millis }[] {
    return [...(this.#permits.get(name) ?? [])].map(([process, permit]) => ({ process, ...permit }))
  }

  putPermit(name: string, process: string, permit: { n: number; until: Millis }): void {
    const held = this.#permits.get(name) ?? new Map<string, { n: number; until: Millis }>()
    this.#permits.set(name, held.set(process, permit))
  }

  removePermit(name: string, process: string): void {
    this.#permits.get(name)?.delete(process)
  }

  forgetPermits(before: Millis): void {
    for (const [name, held] of this.#permits) {
      for (const [process, { until }] of held) if (until <= before) held.delete(process)
      if (held.size === 0) this.#permits.delete(name)
    }
  }

  getPause(flow: string): PauseRow | undefined {
    return this.pauses.get(flow)
  }

  putPause(flow: string, pause: PauseRow | undefined): void {
    if (pause === undefined) this.pauses.delete(flow)
    else this.pauses.set(flow, pause)
  }

  getPressure(flow: string): Pressure | undefined {
    return this.#pressure.get(flow)
  }

  putPressure(flow: string, pressure: Pressure): void {
    this.#pressure.set(flow, pressure)
  }

  markReplayed(replay: string, event: number, now: Millis): boolean {
    const name = JSON.stringify([replay, event])
    if (this.#replays.has(name)) return true
    this.#replays.set(name, now)
    return false
  }

  forgetReplays(before: Millis): void {
    for (const [name, at] of this.#replays) if (at <= before) this.#replays.delete(name)
  }
}

export class MemoryDocs implements DocTable {
  readonly #docs = new Map<string, Doc>()
  readonly audit: AuditRecord[] = []

  get(kind: string, id: string): Doc | undefined {
    return this.#docs.get(JSON.stringify([kind, id]))
  }

  put(doc: Doc): void {
    this.#docs.set(JSON.stringify([doc.kind, doc.id]), { ...doc, body: Uint8Array.from(doc.body) })
  }

  remove(kind: string, id: string): void {
    this.#docs.delete(JSON.stringify([kind, id]))
  }

  page(kind: string, after: string, n: number): readonly Doc[] {
    return [...this.#docs.values()]
      .filter((doc) => doc.kind === kind && doc.id > after)
      .toSorted((one, other) => (one.id < other.id ? -1 : 1))
      .slice(0, n)
  }

  lastAudit(): AuditRecord | undefined {
    return this.audit.at(-1)
  }

  addAudit(record: AuditRecord): void {
    this.audit.push(record)
  }
}
