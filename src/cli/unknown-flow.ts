// Recognises a misspelled flow or source: as a filter, it matches nothing, which looks like an answer.
import { suggestName } from '../validate/closest-name.ts'
import type { ApiCall, ApiProblem, ApiResult } from './api-client.ts'

type Call = (call: ApiCall) => Promise<ApiResult>

/** `findUnknownFlow` returns the problem if no process serves the flow and the store has no work of it. */
export async function findUnknownFlow(call: Call, flow: string): Promise<ApiProblem | undefined> {
  const names = await listFlowNames(call)
  if (names === undefined || names.includes(flow)) return undefined
  // The list lacks an idle flow that only other processes serve.
  const explained = await call({ method: 'GET', path: '/v1/explain', query: { flow, key: '' } })
  if (explained.kind !== 'done') return undefined
  const { facts } = explained.value as { readonly facts: { readonly served: boolean } }
  if (facts.served) return undefined
  const fix = suggestName(flow, names).trim() || 'sluice flows lists all flows.'
  return { status: 404, code: 'NOT_FOUND', detail: `There is no flow ${JSON.stringify(flow)}.`, fix }
}

/** `listFlowNames` returns undefined if the server does not let the caller list flows. */
export async function listFlowNames(call: Call): Promise<readonly string[] | undefined> {
  const answer = await call({ method: 'GET', path: '/v1/flows' })
  if (answer.kind !== 'done') return undefined
  return (answer.value as { readonly items: readonly { readonly flow: string }[] }).items.map(({ flow }) => flow)
}

/** `suggestSource` returns the question whether another source was meant, or an empty text. Events may have sources
    that the app does not declare. */
export async function suggestSource(call: Call, source: string): Promise<string> {
  const answer = await call({ method: 'GET', path: '/v1/sources' })
  if (answer.kind !== 'done') return ''
  const names = (answer.value as { readonly items: readonly { readonly name: string }[] }).items.map(({ name }) => name)
  return names.includes(source) ? '' : suggestName(source, names).trim()
}
