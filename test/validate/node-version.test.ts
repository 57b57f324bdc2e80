import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { assertNodeVersion, MIN_NODE } from '../../src/validate/node-version.ts'

const PACKAGE = new URL('../../package.json', import.meta.url)
const README = new URL('../../README.md', import.meta.url)

it('is the version that package.json and the README name', () => {
  const { engines } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { readonly engines: { readonly node: string } }
  expect(engines.node).toBe(`>=${MIN_NODE}`)
  expect(readFileSync(README, 'utf8')).toContain(`Node.js ${MIN_NODE} or later`)
})

it.each(['22.19.0', '22.20.1', '23.0.0', '24.1.0', '100.0.0'])('accepts %s', (version) => {
  expect(() => assertNodeVersion(version)).not.toThrow()
})

it.each(['20.20.2', '22.18.9', '9.9.9'])('rejects %s', (version) => {
  expect(() => assertNodeVersion(version)).toThrow(
    `NODE_TOO_OLD: Sluice needs Node ${MIN_NODE} or later; this is ${version}.`,
  )
})

it('is checked before anything fails to load: no file imports by name what an older Node.js lacks', () => {
  // A missing name of a module ends the process with a SyntaxError before any code of Sluice runs.
  const names = /import \{[^}]*\bgetCACertificates\b[^}]*\} from 'node:tls'/
  const source = fileURLToPath(new URL('../../src', import.meta.url))
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  expect(files.length).toBeGreaterThan(100)
  expect(files.filter((file) => names.test(readFileSync(join(source, file), 'utf8')))).toEqual([])
})

it('is checked by sluice/testing before it loads a package that needs a newer Node.js', () => {
  const entry = new URL('../../src/testing/index.ts', import.meta.url).href
  const code = `Object.defineProperty(process.versions, 'node', { value: '20.20.2' })
delete require('node:zlib').createZstdDecompress
import('${entry}').catch((error) => console.log(String(error)))`
  const { stdout } = spawnSync(process.execPath, ['--input-type=commonjs', '--eval', code], { encoding: 'utf8' })
  expect(stdout).toContain(`NODE_TOO_OLD: Sluice needs Node ${MIN_NODE} or later; this is 20.20.2.`)
})
