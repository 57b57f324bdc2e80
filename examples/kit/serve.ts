// `serve` runs an example until Ctrl-C: its stand-ins, its app or its worker processes, and its page.
import { systemClock } from 'sluice'
import type { Env, Example } from './example.ts'
import { serveHandler } from './http.ts'
import { livePage } from './live-page.ts'
import { Stage } from './stage.ts'

export interface ServeOptions {
  readonly store: string
  readonly env: Env
  readonly port: number
  readonly write: (line: string) => void
}

export async function serve<World>(example: Example<World>, { store, env, port, write }: ServeOptions): Promise<void> {
  const options = { log: { level: 'warn', format: 'pretty-lines' }, admin: { open: 'loopback' } } as const
  const tell = (who: string, what: string): void =>
    write(`${new Date(systemClock.now()).toISOString()}  ${who.padEnd(9)} ${what}`)
  const { workers, page } = example
  const appPort = page === undefined ? port : 0
  const stage = await Stage.open(example, { store, env, tell, options, port: appPort, ...(workers && { workers }) })
  const site = page === undefined ? undefined : await serveHandler(livePage(page(stage)), port)
  if (site !== undefined) write(`The page is at ${site.url}/`)
  write(`Listens on ${stage.address}; Ctrl-C ends it.`)
  await example.beforeServing?.(stage)
  for (const hint of example.hints?.(stage) ?? []) write(hint)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await site?.close()
  await stage.close()
}
