// `matchesFilter` filters records in the process, for stores that search without SQL.
import type { RecordFilter } from '../contract/index.ts'

/** `matchesFilter` returns whether every field of the filter has its value in the record. A field that the record lacks matches nothing. */
export function matchesFilter(record: object, filter: RecordFilter): boolean {
  const has = record as Record<string, unknown>
  const at = getRecordTime(has)
  return Object.entries(filter).every(([name, wanted]) => {
    if (wanted === undefined) return true
    if (name === 'from') return at !== undefined && at >= Number(wanted)
    if (name === 'to') return at !== undefined && at < Number(wanted)
    if (name === 'withoutSource') return typeof has['source'] === 'string' && !has['source'].startsWith(String(wanted))
    if (name === 'lane' && Array.isArray(has['lanes'])) return has['lanes'].includes(wanted)
    // Only the record of a lane has a `row`; its `lane` is its own id.
    return (name === 'lane' && has['row'] !== undefined ? has['id'] : has[name]) === wanted
  })
}

/** Returns when the event arrived, the run or dead letter ended, the audit entry was written, or the event became unrouted. */
function getRecordTime(has: Record<string, unknown>): number | undefined {
  const at = has['arrived'] ?? has['ended'] ?? has['at'] ?? has['since']
  return typeof at === 'number' ? at : undefined
}
