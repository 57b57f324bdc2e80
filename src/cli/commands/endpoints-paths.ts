// The API paths of endpoints.
import { toPath } from '../api-client.ts'
import type { CommandContext } from '../command.ts'

export const ENDPOINTS_PATH = '/v1/webhooks/subscribers'

/** `endpointPath` returns the path of the endpoint that the first argument names. */
export function endpointPath({ args: given }: CommandContext, act?: string): string {
  const [id = ''] = given.words
  const path = toPath(ENDPOINTS_PATH.slice(1), id)
  return act === undefined ? path : `${path}/${act}`
}
