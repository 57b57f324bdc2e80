// Where the API has endpoints.
import { pathOf } from '../caller.ts'
import type { Scene } from '../command.ts'

export const PATH = '/v1/webhooks/subscribers'

/** Of the one that the first word names. */
export function one({ given }: Scene, act?: string): string {
  const [id = ''] = given.words
  const path = pathOf(PATH.slice(1), id)
  return act === undefined ? path : `${path}/${act}`
}
