// Which events: what a search and a replay both go by.
import { z } from 'zod'
import { asked, laneKey, name, tenant } from '../schemas.ts'

type Left<T, In = unknown> = z.ZodExactOptional<z.ZodType<T, In>>

interface EventFilterFields {
  readonly source: Left<string>
  readonly type: Left<string>
  readonly tenant: Left<string>
  readonly flow: Left<string>
  readonly key: Left<string>
  readonly from: Left<number, string | number>
  readonly to: Left<number, string | number>
}

const WORD_MAX = 256

export const EVENT_FILTER: EventFilterFields = {
  source: z.string().max(WORD_MAX).exactOptional(),
  type: z.string().max(WORD_MAX).exactOptional(),
  tenant: tenant.exactOptional(),
  flow: name.exactOptional().meta({ description: 'Together with key: what came into that lane.' }),
  key: laneKey.exactOptional(),
  from: asked.exactOptional(),
  to: asked.exactOptional(),
}
