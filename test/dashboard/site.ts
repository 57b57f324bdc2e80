// `openSite` is a scene with a browser on it. Every page of it fails the test if it logs an error or breaks its policy.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { openBrowser, type OpenBrowser } from '../browser.ts'
import { openScene, type Scene, type SceneOptions } from './scene.ts'

export interface Site {
  readonly scene: Scene
  readonly browser: OpenBrowser
  /** Opens a page of the dashboard, whose path is relative to the mount. */
  open(path: string, options?: OpenOptions): Promise<Page>
  /** What the pages logged as errors. Requests that the test wants to fail are left out by the test itself. */
  readonly errors: string[]
  /** Closes the pages and forgets their errors: each test begins anew. */
  reset(): Promise<void>
  close(): Promise<void>
}

interface OpenOptions {
  readonly width?: number
  readonly scheme?: 'light' | 'dark'
  /** The text of the heading to wait for. */
  readonly heading?: string | RegExp
}

/** A page that does not show what it should fails its test before the browser runs out of connections. */
const TIMEOUT = 20_000

export async function openSite(options: SceneOptions = {}): Promise<Site> {
  const scene = await openScene(options)
  const browser = await openBrowser()
  const errors: string[] = []
  return {
    scene,
    browser,
    errors,
    async open(path, { width = 1_440, scheme = 'light', heading } = {}) {
      const page = await browser.context.newPage()
      page.setDefaultTimeout(TIMEOUT)
      page.on('pageerror', (error) => errors.push(`${path}: ${error.message}`))
      page.on('console', (message) => {
        if (message.type() === 'error') errors.push(`${path}: ${message.text()} ${message.location().url}`)
      })
      await page.setViewportSize({ width, height: width < 800 ? 860 : 900 })
      // Without a GPU, each frame of the gliding axis costs a core.
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
      await page.goto(scene.url + path)
      if (heading !== undefined) await page.getByRole('heading', { level: 1, name: heading }).waitFor()
      return page
    },
    async reset() {
      await Promise.all(
        browser.context
          .pages()
          .slice(1)
          .map((page) => page.close()),
      )
      errors.length = 0
    },
    async close() {
      await browser.close()
      await scene.close()
    },
  }
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string
    readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[]
  }[]
}

/** `axe` returns what is seriously wrong for people who cannot see the page, or cannot use a mouse. */
export async function axe(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE)
  const { violations } = await page.evaluate<AxeResult>(
    "axe.run({ exclude: ['.glide'] }, { resultTypes: ['violations'] })",
  )
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map(({ target, failureSummary }) => `${target.join(' ')} (${failureSummary})`)
          .join('; ')}`,
    )
}

/** `overflow` returns by how many pixels a page is wider than its window. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
