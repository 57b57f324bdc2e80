// `openBrowser` starts a real Chromium for a test. `npm test` installs it first where it is missing.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext } from 'playwright-core'
import { findBrowser } from '../scripts/browser.mjs'

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
  const executablePath = findBrowser()
  if (executablePath === undefined) {
    throw new Error('There is no Chromium. Install it, or set CHROMIUM to the path of Chromium or Chrome.')
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-browser-'))
  const context = await chromium.launchPersistentContext(folder, {
    executablePath,
    args: FLAGS,
    headless: true,
    timezoneId: 'UTC',
    locale: 'en-GB',
  })
  return {
    context,
    async close() {
      await context.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
