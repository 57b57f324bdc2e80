// What a contender of the benchmark has to be able to do, so that one more contender is one more file.
import type { AppendWork, DrainWork } from './workload.ts'

/** So many things done in so much time. The side holds the clock, because only it knows when its set-up is over. */
export interface Measurement {
  readonly count: number
  readonly millis: number
}

/** Versions and settings that a reader needs in order to judge the figures; they go into the JSON. */
export type Settings = Readonly<Record<string, string | number | boolean>>

export interface Side {
  readonly name: string
  readonly settings: Settings
  /**
   * Starts from an empty store. `work.callers` callers each append batch after batch, waiting for each to be durable,
   * until `work.seconds` have passed. Counted: events whose append was acknowledged.
   */
  append(work: AppendWork): Promise<Measurement>
  /**
   * Starts from an empty store and puts in `work.count` jobs that are due, off the clock. The clock runs from the first
   * call of the handler (which does nothing) until every job is settled durably, not just handled.
   */
  drain(work: DrainWork): Promise<Measurement>
  close(): Promise<void>
}

export type StoreName = 'sqlite' | 'postgres'

/** Through an app, as its users do; or by the calls of the store alone, to see what that costs. */
export type Through = 'app' | 'store'

export interface SubjectOptions {
  readonly store: StoreName
  readonly through: Through
}

export type DueOrder = 'arrival' | 'random'

/** The side of the `lanes` bench, where nothing is compared but sizes. */
export interface LaneSide {
  /**
   * Puts in `count` lanes with one waiting event each, all due by now. With 'arrival' a lane that came later is due
   * later; with 'random' the two orders have nothing in common.
   */
  fill(count: number, due: DueOrder): Promise<void>
  /** One claim as the engine makes it, of at most `limit` lanes; answers how many it got. The caller times it. */
  claim(limit: number): Promise<number>
  close(): Promise<void>
}

/** What `bench/sluice.ts` exports. Each opening gets an empty folder of its own, which others remove. */
export interface SubjectModule {
  openSide(folder: string, options: SubjectOptions): Promise<Side>
  openLanes(folder: string): Promise<LaneSide>
}
