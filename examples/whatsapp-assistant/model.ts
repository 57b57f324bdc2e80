// `askModel` has a language model answer, at any address that speaks OpenAI's chat completions.
import type { Limit } from 'sluice'
import { assertAccepted } from './channels.ts'
import type { HandedOn } from './domain/handed-on.ts'

export interface ModelAccess {
  readonly url: string
  readonly key: string
  readonly name: string
  readonly limit: Limit
}

const AGGREGATED =
  'The user sent several messages; [+5s] means five seconds after the first. Answer all of them at once.'

/** The signal aborts the call when the person writes again. */
export async function askModel(
  { url, key, name, limit }: ModelAccess,
  { text, is_aggregated }: HandedOn,
  prompt: string,
  signal: AbortSignal,
): Promise<string> {
  const system = `${prompt}\nis_aggregated: ${is_aggregated}${is_aggregated ? `. ${AGGREGATED}` : ''}`
  const messages = [
    { role: 'system', content: system },
    { role: 'user', content: text },
  ]
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: name, messages })
  const response = await limit.fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body, signal })
  await assertAccepted('The model', response)
  const { choices } = (await response.json()) as { choices: readonly { message: { content: string } }[] }
  const reply = choices[0]?.message.content.trim() ?? ''
  if (reply === '') throw new Error('The model returned an empty reply.')
  return reply
}
