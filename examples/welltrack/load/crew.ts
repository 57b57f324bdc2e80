// `Crew` is what a load needs: worker processes of the app, and stand-ins with people who are connected.
import { systemClock } from 'sluice'
import { serveHandler, type Served } from '../../kit/http.ts'
import { Workers } from '../../kit/workers.ts'
import { SHORT_TIMES } from '../scenarios/world.ts'
import { GarminStandIn } from '../stand-in/garmin.ts'
import { StravaStandIn } from '../stand-in/strava.ts'
import { connectEverybody, eventually, pushAll } from './people.ts'
import type { Push } from './plan.ts'

const STRAVA = { quarterHour: 20, day: 100_000, window: 5_000 }

export class Crew {
  readonly garmin = new GarminStandIn(systemClock, 200)
  readonly strava = new StravaStandIn(systemClock, STRAVA)
  readonly workers: Workers
  readonly #served: readonly Served[]

  private constructor(workers: Workers, served: readonly Served[]) {
    this.workers = workers
    this.#served = served
  }

  static async start(store: string, workers: number): Promise<Crew> {
    const urls: Record<string, string> = {}
    const env = {
      ...SHORT_TIMES,
      STRAVA_PER_15_MINUTES: String(STRAVA.quarterHour),
      STRAVA_PER_DAY: String(STRAVA.day),
      STRAVA_WINDOW_MS: String(STRAVA.window),
      STRAVA_REQUESTS_PER_ATHLETE: '1000000',
    }
    const served: Served[] = []
    const crew = new Crew(new Workers({ main: import.meta.resolve('../main.ts'), store, env, urls }), served)
    for (const [name, handler] of Object.entries({
      garmin: crew.garmin.handle,
      'garmin-oauth': crew.garmin.handle,
      strava: crew.strava.handle,
      notify: () => new Response(''),
      sentry: () => Response.json({}),
    })) {
      const one = await serveHandler(handler)
      served.push(one)
      urls[name] = one.url
    }
    try {
      await crew.workers.start(workers)
      await connectEverybody(crew)
      return crew
    } catch (error) {
      await crew.stop()
      throw error
    }
  }

  readonly send = (path: string, init?: RequestInit): Promise<Response> => fetch(this.workers.url + path, init)

  async get<T>(path: string): Promise<T> {
    return (await (await this.send(path)).json()) as T
  }

  push(pushes: readonly Push[]): Promise<void> {
    return pushAll(this, pushes)
  }

  /** Resolves when no lane of the flow (default: of all flows) waits or runs. */
  async idle(flow?: string): Promise<void> {
    await eventually(async () => {
      const { items } = await this.get<{ items: { flow: string; lanes: number }[] }>('/v1/flows')
      return items.every((one) => one.lanes === 0 || (flow !== undefined && one.flow !== flow))
    })
  }

  async stop(): Promise<void> {
    await this.workers.stop()
    await Promise.all(this.#served.map((one) => one.close()))
  }
}

/** The value that `share` of the values do not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return Math.round(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN)
}
