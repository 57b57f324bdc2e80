// `sluice init` writes a first app into the folder: a configuration, its variables and a test. It asks nothing and keeps
// every file that exists.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from '../command.ts'
import { EXIT } from '../exit.ts'

interface WrittenFile {
  readonly name: string
  readonly text: string
  /** Only the owner may read a file with secrets. */
  readonly isSecret?: boolean
}

export const init: Command = {
  name: 'init',
  description: 'write a first sluice.config.ts, its test and .env into this folder',
  run: ({ output: out, target: { folder } }) => {
    const results = filesOf(folder).map(({ name, text, isSecret = false }) => {
      const file = join(folder, name)
      const exists = existsSync(file)
      // `wx` keeps a file that another process wrote in the meantime.
      if (!exists) writeFileSync(file, text, { flag: 'wx', ...(isSecret && { mode: 0o600 }) })
      return { file: name, result: exists ? 'kept' : 'written' }
    })
    if (out.asJson) {
      out.printJson({ files: results })
      return Promise.resolve(EXIT.done)
    }
    for (const { file, result } of results) out.print(`${result.padEnd(7)}  ${file}`)
    if (!isSecretIgnored(folder)) out.print(`\nAdd to .gitignore: ${IGNORED.trim().replaceAll('\n', ', ')}`)
    out.print(NEXT_STEPS)
    return Promise.resolve(EXIT.done)
  },
}

const NEXT_STEPS = `
Next:
  npx sluice dev                      run the app, and restart it when a file changes
  npx sluice send github --type=push  in a second terminal: send it a signed webhook
  npx sluice tail                     watch what happens
  node --test                         run the test`

function filesOf(folder: string): readonly WrittenFile[] {
  // In a package of CommonJS, Node loads only .mts files as modules.
  const extension = readPackageType(folder) === 'module' ? 'ts' : 'mts'
  const secret = randomBytes(24).toString('base64url')
  return [
    { name: `sluice.config.${extension}`, text: CONFIG },
    { name: `sluice.test.${extension}`, text: TEST.replace('./sluice.config.ts', `./sluice.config.${extension}`) },
    { name: '.env.example', text: formatVariables('') },
    { name: '.env', text: formatVariables(secret), isSecret: true },
    { name: '.gitignore', text: IGNORED },
  ]
}

function readPackageType(folder: string): unknown {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly type?: unknown }).type
  } catch {
    return undefined
  }
}

function isSecretIgnored(folder: string): boolean {
  try {
    return /^\/?\.env\b/m.test(readFileSync(join(folder, '.gitignore'), 'utf8'))
  } catch {
    return false
  }
}

function formatVariables(secret: string): string {
  return `# The secret that you enter in GitHub under Settings, Webhooks.\nGITHUB_SECRET=${secret}\n`
}

const IGNORED = `node_modules
.env
.sluice-encryption-key
sluice.db*
`

const CONFIG = `import { Sluice } from 'sluice'
import { github } from 'sluice/sources'

const app = new Sluice({ store: 'sqlite:sluice.db' })

// GitHub posts to /in/github. A request is verified and stored before it is answered.
app.source('github', github({ secret: process.env['GITHUB_SECRET'] }))

// One run per repository, two seconds after its last push, with every push in it.
app.flow('build', {
  on: 'github/push',
  key: (event) => event.subject,
  debounce: { quiet: '2s', max: '30s' },
  run: async ({ key, events, log }) => {
    log.info(\`build \${key} after \${events.length} pushes\`)
  },
})

export default app
`

const TEST = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testApp } from 'sluice/testing'

process.env['GITHUB_SECRET'] ??= 'a secret for the test'
const { default: app } = await import('./sluice.config.ts')

test('two pushes lead to one build', async () => {
  // The test has its own store and its own clock: it waits for nothing.
  const t = await testApp(app)
  for (const commit of ['a1', 'b2']) {
    await t.send({ source: 'github', type: 'push', subject: 'octo/app', data: { after: commit } })
  }
  await t.advance('2s')
  assert.equal(t.runs.length, 1)
  assert.equal(t.runs[0]?.events.length, 2)
  await t.stop()
})
`
