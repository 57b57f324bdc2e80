// Calls about keys. A server demands a key, but none may exist yet, or all may be lost. Anyone who can open the store
// beside the server, as on PostgreSQL, needs none.
import { SluiceError } from '../errors.ts'
import { openLocalClient } from './find-client.ts'
import type { ApiResult, ApiCall, ApiClient } from './api-client.ts'
import type { CommandContext } from './command.ts'

/** `byStore` returns a context that repeats a call on the store itself when the server rejects it for lack of a key. */
export function byStore(context: CommandContext): CommandContext {
  return {
    args: context.args,
    output: context.output,
    target: context.target,
    clock: context.clock,
    get signal() {
      return context.signal
    },
    connect: async () => {
      const server = await context.connect()
      return {
        kind: server.kind,
        location: server.location,
        call: (call) => callEither(context, server, call),
        close: () => server.close(),
      }
    },
  }
}

async function callEither(
  { target: where, output: out }: CommandContext,
  server: ApiClient,
  call: ApiCall,
): Promise<ApiResult> {
  const answer = await server.call(call)
  const isNamed = (where.url ?? where.env['SLUICE_URL']) !== undefined
  if (isNamed || answer.kind !== 'problem' || answer.problem.code !== 'KEY_MISSING') return answer
  const own = await openLocalClient(where).catch(ignoreUnreachable)
  try {
    if (own === undefined || !(await isShared(own))) return answer
    out.printVerbose(`The server requires a key; using ${own.location}`)
    return await own.call(call)
  } finally {
    await own?.close()
  }
}

/** A file belongs to one process, and memory in this process is not the server's, so neither is shared. */
async function isShared(client: ApiClient): Promise<boolean> {
  const safety = await client.call({ method: 'GET', path: '/v1/store' })
  return safety.kind === 'done' && (safety.value as { readonly durable: boolean }).durable
}

function ignoreUnreachable(error: unknown): undefined {
  if (!(error instanceof SluiceError)) throw error
  return undefined
}
