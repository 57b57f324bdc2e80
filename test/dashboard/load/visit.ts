// A visitor who goes through the dashboard by keyboard and mouse. For each step, the page itself measures the time from the input
// until the frame that shows the answer.
import type { Page } from 'playwright-core'
import type { Chance } from '../../sqlite/kill-load.ts'

export interface Step {
  readonly name: string
  /** The last key or click is the input that is measured. */
  readonly act: (page: Page) => Promise<void>
  /** An expression that becomes true once the answer is shown. */
  readonly shows: string
}

/** How long a step may take before the visit fails. */
const LONGEST_STEP = 60_000

/** The lane whose row is open. Rows move while somebody looks at them. */
const OPEN_LANE = "document.querySelector('.lane-row.chosen')?.dataset.lane"

/**
 * Runs in the page. The answer counts as shown after the first frame in whose layout the expression is true. The time begins
 * with the input itself, so it includes a wait for a busy page.
 */
const WATCH = `globalThis.watchAnswer = (isShown) => {
  globalThis.openBefore = ${OPEN_LANE}
  let began
  const hear = ({ timeStamp }) => (began = timeStamp)
  for (const kind of ['keydown', 'pointerup']) addEventListener(kind, hear, { capture: true })
  globalThis.answer = new Promise((resolve) => {
    const look = () => {
      if (began === undefined || !isShown()) return requestAnimationFrame(look)
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = () => {
        for (const kind of ['keydown', 'pointerup']) removeEventListener(kind, hear, { capture: true })
        resolve(performance.now() - began)
      }
      port2.postMessage('painted')
    }
    requestAnimationFrame(look)
  })
}`

export async function prepare(page: Page): Promise<void> {
  await page.addInitScript(WATCH)
}

/** `measure` performs a step and returns the milliseconds from its input to its answer. */
export async function measure(page: Page, { name, act, shows }: Step): Promise<number> {
  await page.evaluate(`watchAnswer(() => ${shows})`)
  await act(page)
  const took = await Promise.race([
    page.evaluate<number>('answer'),
    new Promise<undefined>((resolve) => setTimeout(resolve, LONGEST_STEP, undefined).unref()),
  ])
  if (took === undefined) throw new Error(`The step "${name}" got no answer within ${LONGEST_STEP} ms: ${shows}`)
  return took
}

const TYPED = "JSON.stringify([...document.querySelectorAll('input')].map(({ value }) => value))"

/** The page forbids `eval`, which Playwright's own function of this kind uses. */
async function until(page: Page, condition: string): Promise<void> {
  const end = performance.now() + LONGEST_STEP
  while (!(await page.evaluate<boolean>(condition))) {
    if (performance.now() > end) {
      const typed = await page.evaluate<string>(TYPED)
      throw new Error(`The page at ${page.url()}, with ${typed} typed, did not become as expected: ${condition}`)
    }
    await page.waitForTimeout(20)
  }
}

const title = (text: string): string => `document.querySelector('h1')?.textContent === '${text}'`
const has = (selector: string, least = 1): string => `document.querySelectorAll('${selector}').length >= ${least}`
const both = (...parts: readonly string[]): string => parts.map((part) => `(${part})`).join(' && ')
/** Every row of the lanes says this word or contains this key. */
const everyLane = (selector: string, text: string): string =>
  both(
    has('.lane-row'),
    `[...document.querySelectorAll('.lane-row ${selector}')].every((one) => one.textContent.includes('${text}'))`,
  )

const press =
  (...keys: readonly string[]) =>
  async (page: Page): Promise<void> => {
    for (const key of keys) await page.keyboard.press(key)
  }

const click = (selector: string) => (page: Page) => page.locator(selector).first().click()

const open = (name: string, keys: readonly string[], shows: string): Step => ({
  name: `open ${name}`,
  act: press('g', ...keys),
  shows,
})

/** `tour` returns the steps of one round, in which each step begins where the one before has ended. */
/** The lanes have keys from `cus_0` on. */
export function tour(chance: Chance, lanes: number): readonly Step[] {
  // Each round searches for another key of four digits.
  const key = `cus_${1_000 + chance.below(Math.min(lanes, 9_999) - 1_000)}`
  return [
    open('the overview', ['o'], both(title('Overview'), has('.verdict .say'), has('.panel', 3))),
    open('the lanes', ['l'], both(title('Lanes'), has('.lane-row', 20))),
    { name: 'open a row of the lanes', act: press('j'), shows: has('.lane-open p') },
    {
      name: 'open the next row',
      act: press('j'),
      shows: both(has('.lane-open p'), `${OPEN_LANE} !== openBefore`),
    },
    {
      name: 'filter lanes by state',
      act: (page) => page.getByRole('button', { name: /^Blocked/ }).click(),
      shows: everyLane('.unseen', 'Blocked'),
    },
    {
      name: 'show all states',
      act: (page) => page.getByRole('button', { name: /^All/ }).first().click(),
      shows: has('.lane-row', 20),
    },
    {
      name: 'type a letter of a key',
      async act(page) {
        const field = page.getByRole('searchbox', { name: 'Key' })
        await field.pressSequentially(key.slice(0, -1))
        await until(page, everyLane('.who b', key.slice(0, -1)))
        await field.press(key.slice(-1))
      },
      shows: everyLane('.who b', key),
    },
    { name: 'open a lane', act: click('.lane-row a:not([aria-expanded=true])'), shows: has('.lane-open p') },
    { name: 'open its page', act: press('Enter'), shows: both(title(key), has('.big-picture'), has('.explain')) },
    open('the events', ['e'], both(title('Events'), has('.event-table tbody tr', 50))),
    {
      name: 'type a letter of a search',
      async act(page) {
        const field = page.getByRole('searchbox', { name: 'Search events' })
        await field.pressSequentially('contact.change')
        await until(page, has('.event-table mark', 20))
        await field.press('d')
      },
      shows: "document.querySelector('.event-table mark')?.textContent === 'contact.changed'",
    },
    {
      name: 'open an event',
      act: click('.event-table tbody tr a'),
      shows: both(has('.life'), title('contact.changed')),
    },
    open('the runs', ['r'], both(title('Runs'), has('.run-table tbody tr', 50))),
    {
      name: 'filter runs by their ending',
      act: (page) => page.getByRole('button', { name: 'Done', exact: true }).click(),
      shows: both(
        has('.run-table tbody tr', 20),
        "new URLSearchParams(location.search).get('kind') === 'done'",
        "document.querySelector('.stale') === null",
      ),
    },
    open('the dead letters', ['d'], both(title('Dead letters'), has('.letter-table tbody tr', 50), has('.reason'))),
    { name: 'open a dead letter', act: click('.letter-table tbody tr a'), shows: has('.letter-payload .json') },
    {
      name: 'ask to retry all',
      act: (page) => page.getByRole('button', { name: 'Retry all…' }).click(),
      shows: has('.bulk'),
    },
    open('the endpoints', ['n'], both(title('Endpoints'), has('.endpoint-table tbody tr', 3))),
    { name: 'open an endpoint', act: click('.endpoint-table tbody tr a'), shows: both(has('.endpoint-cols')) },
    open('the limits', ['m'], both(title('Limits'), has('main .panel'))),
    open('the sources', ['s'], both(title('Sources'), has('main .panel'))),
    open('the alerts', ['w'], both(title('Alerts'), has('main .panel'))),
    open('the audit log', ['a'], both(title('Audit log'), has('main tbody tr'))),
    { name: 'open the search', act: press('/'), shows: has('.palette-input input') },
    {
      name: 'type a letter of the search for everything',
      async act(page) {
        const field = page.getByRole('textbox', { name: 'Find events, lanes, payloads' })
        await field.pressSequentially(key.slice(0, -1))
        await until(page, has('.palette-hits a[href^=lanes]', 2))
        await field.press(key.slice(-1))
      },
      shows: `document.querySelector('.palette-hits a[href^=lanes] span')?.textContent.includes('${key}') === true`,
    },
    { name: 'close the search', act: press('Escape'), shows: "document.querySelector('.palette-input') === null" },
    { name: 'switch the theme', act: press('t'), shows: 'true' },
  ]
}
