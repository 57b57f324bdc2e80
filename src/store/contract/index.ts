// `Store` is the contract of a store: `WorkStore` moves events through their lanes, and `RecordStore` serves the API and the
// command line. The conformance suite defines the meaning: a store is correct exactly when the suite passes.
import type { RecordStore } from './records.ts'
import type { WorkStore } from './work.ts'

export interface Store extends WorkStore, RecordStore {}

export type * from './records.ts'
export type * from './work.ts'
export type * from './purge.ts'
