// The commands in the documents exist, with their arguments and options.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.ts'

const FILES = [
  'README.md',
  'docs/operate/deploy.md',
  'docs/operate/backup.md',
  'docs/operate/upgrade.md',
  'docs/cli.md',
]
/** The options that every command has, and those of the commands that run the app. */
const EVERYWHERE = new Set(['json', 'url', 'api-key', 'config', 'verbose', 'help', 'port', 'host', 'trust-proxy'])
const RUNNING = new Set(['dev', 'start', 'version'])

const shown = FILES.flatMap((file) => {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
  return [...text.matchAll(/^sluice (?!<)(.+?)(?: +#.*)?$/gm)].map(([, line = '']) => [file, line] as const)
})

test('the documents contain commands', () => expect(shown.length).toBeGreaterThan(10))

test.each(shown)('%s: sluice %s', (_file, line) => {
  const [own = ''] = line.replaceAll(/\$\([^)]*\)/g, 'x').split(/ [<>|] /)
  const parts = own.split(/\s+/)
  const words = parts.filter((part) => !part.startsWith('-'))
  if (RUNNING.has(words[0] ?? '')) return
  const command = COMMANDS.find((one) => words.join(' ').startsWith(one.name))
  expect(command, line).toBeDefined()
  const given = words.length - (command?.name.split(' ').length ?? 0)
  const takes = command?.positionals ?? []
  expect(given, line).toBeLessThanOrEqual(takes.length)
  expect(given, line).toBeGreaterThanOrEqual(takes.filter((one) => one.startsWith('<')).length)
  const options = parts.filter((part) => part.startsWith('--')).map((part) => part.slice(2).split('=')[0] ?? '')
  const known = new Set([...Object.keys(command?.options ?? {}), ...EVERYWHERE])
  expect(options.filter((option) => !known.has(option))).toEqual([])
})
