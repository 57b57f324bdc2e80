// `measureAnswers` measures how many items a second the app takes all the way into the metrics, and how fast it answers at 80 % of that.
import { systemClock, type Millis } from 'sluice'
import { chance, type Chance } from '../../kit/chance.ts'
import { Crew, percentile } from './crew.ts'
import { sleep } from './people.ts'
import { planItems } from './plan.ts'

export interface AnswerOptions {
  readonly store: string
  readonly seed: number
  readonly workers: number
  /** How many items measure the rate. */
  readonly items: number
  /** How long the answers are measured. */
  readonly during: Millis
  readonly progress: (text: string) => void
}

export interface AnswerFigures {
  /** Items per second from the first push until the last metric is there. */
  readonly rate: number
  /** Items per second that were pushed while the answers were measured. */
  readonly offered: number
  readonly pushes: number
  readonly not200: number
  /** From the time at which a push was due, so that a push that had to wait for an earlier one counts in full. */
  readonly p50: Millis
  readonly p99: Millis
  readonly most: Millis
  /** How long the app worked on after the last push. */
  readonly backlog: Millis
}

const SHARE = 0.8
const PER_PUSH = 10
const OTHER_DAYS = -5_000

export async function measureAnswers(options: AnswerOptions): Promise<AnswerFigures> {
  const { seed, items, during, progress } = options
  const crew = await Crew.start(options.store, options.workers)
  try {
    const random = chance(seed)
    // The first items warm the processes up.
    const warm = planItems({ items: Math.ceil(items / 10), chance: random, perPush: PER_PUSH, from: 2 * OTHER_DAYS })
    for (const wave of warm.waves) await crew.push(wave)
    await crew.idle()
    const began = systemClock.monotonic()
    const plan = planItems({ items, chance: random, perPush: PER_PUSH })
    for (const wave of plan.waves) await crew.push(wave)
    await crew.idle()
    const rate = (plan.sent / (systemClock.monotonic() - began)) * 1_000
    progress(`${Math.round(rate)} items a second`)
    return { rate: Math.round(rate), ...(await pushAtRate(crew, rate * SHARE, { during, random })) }
  } finally {
    await crew.stop()
  }
}

/** A push leaves when it is due, whether the ones before it are answered or not. */
async function pushAtRate(
  crew: Crew,
  rate: number,
  { during, random }: { readonly during: Millis; readonly random: Chance },
): Promise<Omit<AnswerFigures, 'rate'>> {
  const { garmin, send } = crew
  const items = Math.ceil((rate * during) / 1_000)
  const { waves, sent } = planItems({ items, chance: random, perPush: PER_PUSH, from: OTHER_DAYS })
  const pushes = waves.flat()
  const every = during / pushes.length
  const began = systemClock.monotonic()
  const answers: { readonly status: number; readonly after: Millis }[] = []
  await Promise.all(
    pushes.map(async ({ type, items: some }, n) => {
      const due = began + n * every
      await sleep(due - systemClock.monotonic())
      const status = await garmin.push(send, type, some)
      answers.push({ status, after: systemClock.monotonic() - due })
    }),
  )
  const pushed = systemClock.monotonic()
  await crew.idle()
  const times = answers.map(({ after }) => after)
  return {
    offered: Math.round((sent / (pushed - began)) * 1_000),
    pushes: pushes.length,
    not200: answers.filter(({ status }) => status !== 200).length,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    most: percentile(times, 1),
    backlog: Math.round(systemClock.monotonic() - pushed),
  }
}
