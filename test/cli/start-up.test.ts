// A process loads packages only when it needs them, so that simple commands and apps without deliveries start quickly.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const INDEX = new URL('../../src/index.ts', import.meta.url).href
const LATER = ['undici', 'fastify', 'zod', 'prom-client', 'pg']

/** Prints the packages that the library loads. */
const SCRIPT = `
import { registerHooks } from 'node:module'
const loaded = new Set()
registerHooks({
  load(url, context, next) {
    const [, name] = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? []
    if (name !== undefined) loaded.add(name)
    return next(url, context)
  },
})
await import('${INDEX}')
console.log(JSON.stringify([...loaded]))
`

it('the library loads clients, servers and schemas only when they are needed', async () => {
  const args = ['--no-warnings', '--input-type=module', '--eval', SCRIPT]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const loaded = JSON.parse(stdout) as readonly string[]
  expect(loaded).toContain('pino')
  expect(loaded.filter((name) => LATER.includes(name))).toEqual([])
})
