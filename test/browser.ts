// `openBrowser` starts a real Chromium for a test. Where it is missing, Debian's package is installed if that is possible.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext } from 'playwright-core'

const PATHS = [
  process.env['CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
/** A test needs no sandbox, which containers often lack, and nothing from the network. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export interface OpenBrowser {
  readonly context: BrowserContext
  close(): Promise<void>
}

/** Throws if there is no Chromium: a test of a page never passes without one. */
export async function openBrowser(): Promise<OpenBrowser> {
  const executablePath = findChromium()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-browser-'))
  const context = await chromium.launchPersistentContext(folder, { executablePath, args: FLAGS, headless: true })
  return {
    context,
    async close() {
      await context.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function findChromium(): string {
  const found = lookForChromium() ?? (installChromium(), lookForChromium())
  if (found !== undefined) return found
  throw new Error('There is no Chromium. Install it, or set CHROMIUM to the path of Chromium or Chrome.')
}

function lookForChromium(): string | undefined {
  return PATHS.find((path) => path !== undefined && existsSync(path))
}

function installChromium(): void {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return
  const install = ['install', '-y', '--no-install-recommends', 'chromium']
  if (apt(...install) !== 0 && apt('update') === 0) apt(...install)
}

function apt(...args: readonly string[]): number | null {
  return spawnSync('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }).status
}
