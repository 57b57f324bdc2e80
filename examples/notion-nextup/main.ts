// `npm run example notion-nextup`: plays the scenarios on the stand-in. With --serve it goes on serving: on the stand-in, or,
// with NOTION_TOKEN, on your own Notion.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { play } from './scenarios/play.ts'
import { serve } from './serve.ts'

const USAGE = `npm run example notion-nextup -- [options]
  --serve        serve webhooks until Ctrl-C: on the stand-in, or on the Notion of NOTION_TOKEN
  --dry-run      with --serve: say what would be written, and write nothing
  --port=N       with --serve: where to listen (8787, or PORT of the environment)
  --help         this
With NOTION_TOKEN and NOTION_DATA_SOURCE_ID it serves, on your Notion. README.md has all variables.
`

const { stdout, stderr, env } = process
const say = (line: string): void => void stdout.write(`${line}\n`)

/** 0: all is well. 1: a scenario failed. 2: the options make no sense. */
async function main(args: readonly string[]): Promise<number> {
  let options: { serve: boolean; help: boolean; 'dry-run': boolean; port?: string }
  try {
    options = parseArgs({
      args: [...args],
      options: {
        serve: { type: 'boolean', default: false },
        'dry-run': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        port: { type: 'string' },
      },
    }).values
  } catch (error) {
    stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
    return 2
  }
  if (options.help) {
    stdout.write(USAGE)
    return 0
  }
  const isReal = (env['NOTION_TOKEN'] ?? '') !== ''
  if (!options.serve && !isReal) return inNewFolder((folder) => play(`sqlite:${join(folder, 'nextup.db')}`, say))
  const dryRun = options['dry-run'] ? { DRY_RUN: '1' } : {}
  const port = options.port === undefined ? undefined : Number(options.port)
  try {
    await serve({ env: { ...env, ...dryRun }, isReal, port, say })
    return 0
  } catch (error) {
    stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}

async function inNewFolder(body: (folder: string) => Promise<boolean>): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nextup-'))
  try {
    return (await body(folder)) ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main(process.argv.slice(2))
