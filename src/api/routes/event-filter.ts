// The event filter that a search and a replay share.
import { z } from 'zod'
import { timeInput, laneKey, name, tenant } from '../schemas.ts'

type Optional<T, In = unknown> = z.ZodExactOptional<z.ZodType<T, In>>

interface EventFilterFields {
  readonly source: Optional<string>
  readonly type: Optional<string>
  readonly tenant: Optional<string>
  readonly flow: Optional<string>
  readonly key: Optional<string>
  readonly from: Optional<number, string | number>
  readonly to: Optional<number, string | number>
}

const WORD_MAX = 256

export const EVENT_FILTER: EventFilterFields = {
  source: z.string().max(WORD_MAX).exactOptional(),
  type: z.string().max(WORD_MAX).exactOptional(),
  tenant: tenant.exactOptional(),
  flow: name.exactOptional().meta({ description: 'With `key`: the events that entered that lane.' }),
  key: laneKey.exactOptional(),
  from: timeInput.exactOptional(),
  to: timeInput.exactOptional(),
}
