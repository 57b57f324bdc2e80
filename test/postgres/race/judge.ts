// Compares what the processes of a race report with each other and with what is stored: no event is lost, stored twice or
// stranded, each lane has one run at a time, and each writer's events are in order.
import { isPublished, keysOf, type Held, type Worked, type Written } from './load.ts'

export interface RaceFigure {
  /** Events that `append` acknowledged, and that handlers published. */
  readonly stored: number
  readonly published: number
  /** Events that two writers sent, and the result that one of them got. */
  readonly duplicates: number
  readonly runs: number
  readonly dead: number
  readonly repeatedTurns: number
  readonly lost: readonly string[]
  readonly twice: readonly string[]
  readonly stranded: readonly string[]
  readonly wrong: readonly string[]
}

export class Judge {
  readonly #written: readonly Written[]
  readonly #worked: readonly Worked[]
  readonly #lanes: readonly string[]
  readonly #events: readonly string[]
  readonly #lost: string[] = []
  readonly #twice: string[] = []
  readonly #wrong: string[]

  constructor(
    written: readonly Written[],
    worked: readonly Worked[],
    lanes: readonly string[],
    events: readonly string[],
  ) {
    this.#written = written
    this.#worked = worked
    this.#lanes = lanes
    this.#events = events
    this.#wrong = worked.flatMap((one) => one.wrong)
  }

  figure(): RaceFigure {
    const answers = this.#written.flatMap((one) => one.answers)
    const held = this.#worked.flatMap((one) => one.held)
    const sent = this.#sent(answers)
    const published = new Set(held.flatMap((one) => one.published))
    this.#stored([...sent, ...published])
    this.#ends([...sent, ...published], held)
    for (const [key, its] of Map.groupBy(held, (one) => one.key))
      this.#lane(
        key,
        its.toSorted((one, other) => one.from - other.from),
      )
    return {
      stored: sent.length,
      published: published.size,
      duplicates: answers.filter(([, answer]) => answer === 'duplicate').length,
      runs: held.length,
      dead: held.filter((one) => one.end === 'dead').length,
      repeatedTurns: this.#worked.reduce((sum, one) => sum + one.repeated, 0),
      lost: this.#lost,
      twice: this.#twice,
      stranded: this.#lanes,
      wrong: this.#wrong,
    }
  }

  /** If two writers send an event, one gets `stored`, the other `duplicate`. */
  #sent(answers: readonly (readonly [string, string])[]): readonly string[] {
    const byLabel = Map.groupBy(answers, ([label]) => label)
    for (const [label, its] of byLabel) {
      const said = its.map(([, answer]) => answer).toSorted()
      const wanted = label.startsWith('both') ? 'duplicate,stored' : 'stored'
      if (said.join() !== wanted) this.#wrong.push(`${label} was answered ${said.join()}`)
    }
    return [...byLabel.keys()]
  }

  #stored(labels: readonly string[]): void {
    const stored = new Set<string>()
    for (const label of this.#events) {
      if (stored.has(label)) this.#twice.push(`${label} is stored twice`)
      stored.add(label)
    }
    for (const label of labels) if (!stored.delete(label)) this.#lost.push(`${label} is not stored`)
    for (const label of stored) this.#wrong.push(`${label} came from nowhere`)
  }

  #ends(labels: readonly string[], held: readonly Held[]): void {
    const ends = new Set<string>()
    for (const { key, run, labels: its, end } of held) {
      if (end !== 'done') continue
      for (const label of its) {
        const place = `${label} in ${key}`
        if (ends.has(place)) this.#twice.push(`${place} ended again in ${run}`)
        ends.add(place)
      }
    }
    for (const label of labels)
      for (const key of keysOf(label))
        if (!ends.has(`${label} in ${key}`)) this.#lost.push(`${label} in ${key} has not run`)
  }

  /** One run at a time; a returning run is whole; each writer's events keep the order in which it sent them. */
  #lane(key: string, held: readonly Held[]): void {
    const last = new Map<string, number>()
    let before: Held | undefined
    for (const one of held) {
      if (before !== undefined && one.from < before.to)
        this.#twice.push(`${key}: ${one.run} began while ${before.run} was at work`)
      const comesBack = before !== undefined && COMES_BACK.includes(before.end)
      if (comesBack && !isSame(before, one)) this.#wrong.push(`${key}: ${before?.run} had to come back, not ${one.run}`)
      if (!comesBack && !one.isDeadLetter) this.#order(key, one, last)
      before = one
    }
  }

  #order(key: string, { labels }: Held, last: Map<string, number>): void {
    for (const label of labels) {
      if (isPublished(label)) continue
      const [who = '', n = ''] = label.split(' ')
      if (Number(n) <= (last.get(who) ?? -1)) this.#wrong.push(`${key}: ${label} came after ${last.get(who)}`)
      last.set(who, Number(n))
    }
  }
}

const COMES_BACK: readonly Held['end'][] = ['retry', 'snoozed']

function isSame(one: Held | undefined, other: Held): boolean {
  return one?.run === other.run && one.labels.join() === other.labels.join()
}
