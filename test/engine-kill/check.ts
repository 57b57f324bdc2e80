// Compares what the logs of the processes prove with the content of the store, when nothing is left to do.
import { openStore, type Store } from '../../src/index.ts'
import type { DeadLetterRecord, RecordKind, RecordTypes, RunRecord } from '../../src/store/contract/index.ts'
import { parcelsUpTo, place, type Ledger, type RunKnown } from './ledger.ts'
import { FLOWS_OF, inputOf, STEPS, type Told } from './load.ts'

const PAGE = 500
const LAPSES_MAX = 4

/** Everything in the store, with events by their labels. */
interface Found {
  readonly labels: ReadonlyMap<string, string>
  readonly runs: readonly RunRecord[]
  readonly deadLetters: readonly DeadLetterRecord[]
  readonly waiting: readonly string[]
}

export async function check(address: string, ledger: Ledger): Promise<void> {
  const store = await openStore(address)
  try {
    new Checking(ledger, await look(store)).all()
  } finally {
    await store.close()
  }
}

async function look(store: Store): Promise<Found> {
  const labels = new Map<string, string>()
  const ids = (await every(store, 'events')).map((event) => event.id)
  for (let from = 0; from < ids.length; from += PAGE) {
    const some = ids.slice(from, from + PAGE)
    const { bodies } = await store.readBodies({ events: some })
    for (const [at, id] of some.entries()) labels.set(id, labelIn(bodies[at]))
  }
  const lanes = (await every(store, 'lanes')).map((lane) => `lane ${lane.flow} ${lane.key}`)
  const unrouted = (await every(store, 'unrouted')).map(({ reason, flow }) => `unrouted ${reason} for ${flow}`)
  const deadLetters = await every(store, 'dead')
  return { labels, runs: await every(store, 'runs'), deadLetters, waiting: [...lanes, ...unrouted] }
}

async function every<K extends RecordKind>(store: Store, kind: K): Promise<readonly RecordTypes[K][]> {
  const all: RecordTypes[K][] = []
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const page: { readonly items: readonly RecordTypes[K][]; readonly next: string | undefined } = await store.find({
      kind,
      filter: {},
      cursor,
      n: PAGE,
    })
    all.push(...page.items)
    cursor = page.next
  }
  return all
}

function labelIn(body: Uint8Array | undefined): string {
  return body === undefined ? 'without a body' : (JSON.parse(Buffer.from(body).toString()) as Told).label
}

class Checking {
  readonly #ledger: Ledger
  readonly #found: Found
  /** Ended placements, with their outcome. */
  readonly #done = new Map<string, string>()
  readonly #dead = new Map<string, string>()
  readonly #stored: ReadonlySet<string>

  constructor(ledger: Ledger, found: Found) {
    this.#ledger = ledger
    this.#found = found
    this.#stored = new Set(found.labels.values())
  }

  all(): void {
    const { complaints, drained, stuck } = this.#ledger
    if (!drained) complaints.add('lost', `what nothing happens to any more: ${stuck.slice(0, 5).join(', ')} and others`)
    else for (const what of this.#found.waiting) complaints.add('lost', `${what} is left`)
    for (const record of this.#found.runs) this.#record(record)
    for (const deadLetter of this.#found.deadLetters) this.#deadLetter(deadLetter)
    this.#events()
    for (const run of this.#ledger.runs.values()) this.#run(run)
  }

  #record({ id, kind, flow, events }: RunRecord): void {
    const { complaints, runs } = this.#ledger
    // A dead placement also has a dead letter, which contains more.
    if (kind === 'dead') return
    if (kind !== 'done') return complaints.add('wrong', `${id} has a record that says ${kind}`)
    const known = runs.get(id)
    if (known?.well !== true) complaints.add('wrong', `${id} is recorded as done, and no handler of it ended well`)
    else if (this.#labels(events).join() !== known.events.join()) {
      complaints.add('wrong', `the record of ${id} has other events than its handler had`)
    }
    for (const label of this.#labels(events)) {
      const at = place(label, flow)
      if (this.#done.has(at)) complaints.add('repeatedAfterDone', `${at} is done by ${this.#done.get(at)} and by ${id}`)
      this.#done.set(at, id)
    }
    return undefined
  }

  #deadLetter({ id, flow, reason, lapses, state, events }: DeadLetterRecord): void {
    const { complaints, runs } = this.#ledger
    const known = runs.get(id)
    complaints.counts.dead++
    if (reason === 'crashed') complaints.counts.crashed++
    const due = reason === 'crashed' ? lapses === LAPSES_MAX && (known?.cuts ?? 0) <= lapses : known?.failed === true
    if (!due || state !== 'dead')
      complaints.add('wrong', `${id} is a dead letter (${state}, ${reason}, ${lapses} lapses)`)
    for (const label of this.#labels(events)) {
      const at = place(label, flow)
      if (this.#done.has(at) || this.#dead.has(at)) complaints.add('wrong', `${at} is dead and has another end`)
      this.#dead.set(at, id)
    }
  }

  #labels(events: readonly string[]): readonly string[] {
    return events.map((id) => this.#found.labels.get(id) ?? `event ${id}, which is gone,`)
  }

  /** Every acknowledged event has run or is a dead letter in each flow that takes it, and nothing else exists. */
  #events(): void {
    const { complaints, acked, sent } = this.#ledger
    for (const label of acked) {
      if (!this.#stored.has(label)) complaints.add('lost', `${label} was acknowledged and is not stored`)
      for (const flow of FLOWS_OF[inputOf(label).type]) this.#hasEnded(label, flow)
    }
    const seen = new Set<string>()
    for (const label of this.#found.labels.values()) {
      if (seen.has(label)) complaints.add('wrong', `${label} is stored twice`)
      seen.add(label)
      if (label.includes('/')) this.#parcel(label)
      else if (!sent.has(label)) complaints.add('wrong', `${label} came from nowhere`)
    }
  }

  #hasEnded(label: string, flow: string): boolean {
    const at = place(label, flow)
    const has = this.#done.has(at) || this.#dead.has(at)
    if (!has) this.#ledger.complaints.add('lost', `${at} was neither done nor is it a dead letter`)
    return has
  }

  /** A published event is stored with the settlement of its run, or not at all (L2b). */
  #parcel(label: string): void {
    const { complaints, runs } = this.#ledger
    const known = runs.get(label.slice(0, label.lastIndexOf('/')))
    const most = known === undefined ? 0 : this.#isDone(known) ? STEPS : known.agains + known.maybeAgains
    if (known === undefined || !parcelsUpTo(known, most).includes(label)) {
      complaints.add('wrong', `${label} was published without the settlement of its run`)
    }
    if (this.#hasEnded(label, 'parcels')) complaints.counts.published++
  }

  #isDone(run: RunKnown): boolean {
    return run.events.some((label) => this.#done.get(place(label, run.flow)) === run.id)
  }

  /** A run end that was reported to a process is in the store, with all events that the run published. */
  #run(run: RunKnown): void {
    const { complaints } = this.#ledger
    const isDone = this.#isDone(run)
    const isDead = run.events.some((label) => this.#dead.get(place(label, run.flow)) === run.id)
    if (run.end === 'done' && !isDone) complaints.add('lost', `the end of ${run.id}, which was done`)
    if (run.end === 'dead' && !isDead) complaints.add('lost', `the dead letter ${run.id}`)
    for (const label of parcelsUpTo(run, isDone ? STEPS : run.agains)) {
      if (!this.#stored.has(label)) complaints.add('lost', `${label}, which ${run.id} published`)
    }
  }
}
