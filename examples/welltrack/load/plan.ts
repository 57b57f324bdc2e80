// `planItems` makes up what people send under load, and the metrics that must come of it.
import type { Chance } from '../../kit/chance.ts'
import { mapGarmin } from '../domain/garmin.ts'
import { dedupeHash } from '../domain/metric.ts'
import type { Item, PushType } from '../stand-in/garmin.ts'
import { dailies, garminActivity, sleep, stress, userMetrics } from '../stand-in/payloads.ts'

export interface Push {
  readonly type: PushType
  readonly items: readonly Item[]
}

export interface Plan {
  /** The pushes of the second wave replace items of the first. */
  readonly waves: readonly [readonly Push[], readonly Push[]]
  /** The value of each metric by its hash, as the newest version of its item has it. */
  readonly wanted: ReadonlyMap<string, number>
  readonly sent: number
  readonly duplicates: number
  readonly malformed: number
}

export interface PlanOptions {
  readonly items: number
  readonly chance: Chance
  /** How many items a push has. */
  readonly perPush: number
  /** The newest day: two plans on other days share no item. */
  readonly from?: number
}

interface Sent {
  readonly type: PushType
  readonly item: Item
}

export const PEOPLE = 40

const SUMMARIES = { sleeps: sleep, dailies, stressDetails: stress, userMetrics, activities: garminActivity } as const
const TYPES = Object.keys(SUMMARIES) as readonly (keyof typeof SUMMARIES)[]
/** Of the summaries. A summary is sent 1.4 times, so that two of a hundred items are malformed. */
const MALFORMED = 0.029

/** A third of the items come again with fuller data, and a tenth come twice. */
export function planItems({ items, chance, perPush, from = 0 }: PlanOptions): Plan {
  const first: Sent[] = []
  const later: Sent[] = []
  const wanted = new Map<string, number>()
  let [n, duplicates, malformed] = [0, 0, 0]
  for (; first.length + later.length < items; n++) {
    const person = `person-${n % PEOPLE}`
    const type = TYPES[Math.floor(n / PEOPLE) % TYPES.length] ?? 'dailies'
    const day = from - Math.floor(n / PEOPLE / TYPES.length)
    const whole = { userId: `garmin-${person}`, ...SUMMARIES[type](day) }
    if (chance.hits(MALFORMED)) {
      malformed++
      first.push({ type, item: { userId: whole.userId, summaryId: `malformed-${from}-${n}` } })
      continue
    }
    const isReplaced = chance.hits(1 / 3)
    const item = isReplaced ? { ...whole, ...EARLY[type] } : whole
    first.push({ type, item })
    if (isReplaced) later.push({ type, item: whole })
    for (const metric of mapGarmin(type, whole).metrics) wanted.set(dedupeHash(person, 'garmin', metric), metric.value)
    if (!chance.hits(0.1)) continue
    duplicates++
    first.push({ type, item })
  }
  return {
    waves: [inPushes(first, perPush), inPushes(later, perPush)],
    wanted,
    sent: first.length + later.length,
    duplicates,
    malformed,
  }
}

/** What the first version of an item says, before the device has sent the rest. */
const EARLY: Readonly<Record<keyof typeof SUMMARIES, Readonly<Record<string, unknown>>>> = {
  sleeps: { durationInSeconds: 1_000 },
  dailies: { steps: 10 },
  stressDetails: { timeOffsetStressLevelValues: { '0': 1 } },
  userMetrics: { vo2Max: 1 },
  activities: { distanceInMeters: 1 },
}

/** A body has the items of many people, and of one type. */
function inPushes(all: readonly Sent[], size: number): readonly Push[] {
  return TYPES.flatMap((type) => {
    const items = all.flatMap((one) => (one.type === type ? [one.item] : []))
    return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => ({
      type,
      items: items.slice(n * size, (n + 1) * size),
    }))
  })
}
