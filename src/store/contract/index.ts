// The two contracts of a store. Their meaning is the conformance suite: a store is correct exactly when that passes.
import type { RecordStore } from './records.ts'
import type { WorkStore } from './work.ts'

export interface Store extends WorkStore, RecordStore {}

export type * from './records.ts'
export type * from './work.ts'
