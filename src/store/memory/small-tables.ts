// The small tables in memory: limits and their tickets, permits, pauses, documents.
import type { Millis } from '../../clock.ts'
import type { LimitState } from '../../model/limit.ts'
import type { Pressure } from '../../model/pressure.ts'
import type { AuditRecord, Doc } from '../contract/index.ts'
import type { DocTable, LimitTable, PauseRow, ProcessRow, SmallTables, TicketRow } from '../embedded/tables.ts'

export class MemoryLimits implements LimitTable {
  readonly all: Map<string, LimitState> = new Map()
  readonly #tickets = new Map<string, TicketRow>()

  get(name: string): LimitState | undefined {
    return this.all.get(name)
  }

  put(name: string, state: LimitState): void {
    this.all.set(name, state)
  }

  forget(now: Millis): void {
    for (const [name, state] of this.all) if (state.idleAt <= now) this.all.delete(name)
  }

  ticket(ticket: string): TicketRow | undefined {
    return this.#tickets.get(ticket)
  }

  putTicket(row: TicketRow): void {
    this.#tickets.set(row.ticket, row)
  }

  removeTicket(ticket: string): void {
    this.#tickets.delete(ticket)
  }

  unused(name: string): readonly TicketRow[] {
    return [...this.#tickets.values()]
      .filter((row) => !row.used && row.limits.some((limit) => limit.name === name))
      .toSorted((one, other) => one.order - other.order)
  }

  ticketsBefore(moment: Millis, n: number): readonly TicketRow[] {
    return [...this.#tickets.values()].filter((row) => row.at <= moment).slice(0, n)
  }
}

export class MemorySmall implements SmallTables {
  readonly pauses: Map<string, PauseRow> = new Map()
  readonly #processes = new Map<string, ProcessRow>()
  readonly #permits = new Map<string, Map<string, { n: number; until: Millis }>>()
  readonly #pressure = new Map<string, Pressure>()
  readonly #served = new Map<string, number>()
  readonly #replays = new Map<string, Millis>()

  process(id: string): ProcessRow | undefined {
    return this.#processes.get(id)
  }

  putProcess(id: string, row: ProcessRow): void {
    this.#processes.set(id, row)
  }

  forgetProcesses(before: Millis): void {
    for (const [id, row] of this.#processes) if (row.at <= before) this.#processes.delete(id)
  }

  permits(name: string): readonly { process: string; n: number; until: Millis }[] {
    return [...(this.#permits.get(name) ?? [])].map(([process, permit]) => ({ process, ...permit }))
  }

  putPermit(name: string, process: string, permit: { n: number; until: Millis }): void {
    const held = this.#permits.get(name) ?? new Map<string, { n: number; until: Millis }>()
    this.#permits.set(name, held.set(process, permit))
  }

  removePermit(name: string, process: string): void {
    this.#permits.get(name)?.delete(process)
  }

  pauseOf(flow: string): PauseRow | undefined {
    return this.pauses.get(flow)
  }

  putPause(flow: string, pause: PauseRow | undefined): void {
    if (pause === undefined) this.pauses.delete(flow)
    else this.pauses.set(flow, pause)
  }

  pressure(flow: string): Pressure | undefined {
    return this.#pressure.get(flow)
  }

  putPressure(flow: string, pressure: Pressure): void {
    this.#pressure.set(flow, pressure)
  }

  served(flow: string, group: string): number {
    return this.#served.get(JSON.stringify([flow, group])) ?? 0
  }

  putServed(flow: string, group: string, turn: number): void {
    this.#served.set(JSON.stringify([flow, group]), turn)
  }

  replayedBefore(replay: string, event: number, now: Millis): boolean {
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
