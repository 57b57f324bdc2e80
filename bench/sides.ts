// The interface of a side of the benchmark, so that each further side is one more file.
import type { AppendWork, DrainWork } from './workload.ts'

/** A count of things done, and the time they took. The side measures the time, because only it knows when its set-up is over. */
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
   * Starts from an empty store and adds `work.count` due jobs before the clock runs. The clock runs from the first
   * call of the handler (which does nothing) until every job is settled durably, not just handled.
   */
  drain(work: DrainWork): Promise<Measurement>
  close(): Promise<void>
}

export type StoreName = 'sqlite' | 'postgres'

/** `app` measures through an app, as users do; `store` measures the calls of the store alone. */
export type Through = 'app' | 'store'

export interface SubjectOptions {
  readonly store: StoreName
  readonly through: Through
}

export type DueOrder = 'arrival' | 'random'

/** The side of the `lanes` bench, which compares only sizes of a store. */
export interface LaneSide {
  /**
   * Adds `count` lanes with one waiting event each, all of them due. With 'arrival', a lane that came later is due
   * later; with 'random', the two orders are unrelated.
   */
  fill(count: number, due: DueOrder): Promise<void>
  /** Makes one claim as the engine does, of at most `limit` lanes, and returns how many it got. The caller times it. */
  claim(limit: number): Promise<number>
  close(): Promise<void>
}

/** The exports of `bench/sluice.ts`. Each opening gets an empty folder of its own, which the caller removes. */
export interface SubjectModule {
  openSide(folder: string, options: SubjectOptions): Promise<Side>
  openLanes(folder: string): Promise<LaneSide>
}
