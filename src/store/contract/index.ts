// `Store` joins the two contracts of a store. The conformance suite defines their meaning: a store is correct exactly
// when the suite passes.
import type { RecordStore } from './records.ts'
import type { WorkStore } from './work.ts'

export interface Store extends WorkStore, RecordStore {}

export type * from './records.ts'
export type * from './work.ts'
export type * from './purge.ts'
