// `Example` is what an example app gives to the kit, which plays, serves and tests it.
import type { Clock, Sluice, SluiceOptions } from 'sluice'
import type { Handler } from './http.ts'
import type { Page } from './live-page.ts'
import type { ServeOptions } from './serve.ts'
import type { Stage } from './stage.ts'
import type { StandIn } from './stand-in.ts'

export type Env = Readonly<Record<string, string | undefined>>
export type Tell = (who: string, what: string) => void

/** A `Scenario` acts on the stage, narrates with `stage.tell` and judges with `stage.check`. It fails if it throws. */
export type Scenario<World> = (stage: Stage<World>) => Promise<void>

export interface Example<World> {
  /** The `import.meta.url` of main.ts. The kit starts worker processes from it. */
  readonly main: string
  /** Builds the app. The stage, the server and each worker process call it. */
  readonly build: (at: Surroundings) => Sluice
  /** Creates the stand-ins and everything else around the app. */
  readonly world: (place: Place) => World
  /** By title, in the order in which they are played. */
  readonly scenarios: Readonly<Record<string, Scenario<World>>>
  /** Judges after all scenarios, e.g. what must hold at any time. */
  readonly overall?: Scenario<World>
  /** Puts the world back between two scenarios. */
  readonly reset?: (world: World) => void
  /** Tells what happens in the app, in the words of its domain. */
  readonly narrate?: (app: Sluice, tell: Tell) => void
  /** The settings for scenarios, e.g. short windows. Real variables override them with --serve only. */
  readonly env?: Env
  /** The default store. Without it: `sqlite:` in a temporary folder; for worker processes `postgres`, which starts an embedded server. */
  readonly store?: string
  /** Whether the app publishes in transactions. Virtual time on PostgreSQL is slower then. */
  readonly outbox?: boolean
  /** The options for `new Sluice` while the example is played, e.g. a short lease. */
  readonly options?: Omit<SluiceOptions, 'store'>
  /** --serve starts so many worker processes instead of one app in its own process. It needs PostgreSQL. */
  readonly workers?: number
  /** The page that --serve shows at `/`. */
  readonly page?: (stage: Stage<World>) => Page
  /** Prepares --serve once the app listens, e.g. registers subscribers. */
  readonly beforeServing?: (stage: Stage<World>) => Promise<void>
  /** What --serve prints, e.g. a command to try. */
  readonly hints?: (stage: Stage<World>) => readonly string[]
  /** Returns what serves on the real services, if the environment has the credentials. It runs instead of everything else. */
  readonly real?: (env: Env) => ((options: Omit<ServeOptions, 'store'>) => Promise<void>) | undefined
  /** Options of the command line that set variables: `{ 'dry-run': { DRY_RUN: '1' } }`. */
  readonly flags?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** What an app is built with. `url` returns the address of a stand-in. */
export interface Surroundings {
  readonly store: string
  readonly env: Env
  readonly clock: Clock
  /** The options for `new Sluice` beside the store. */
  readonly options: Omit<SluiceOptions, 'store'>
  readonly url: (standIn: string) => string
  /** Wraps a database client of the app's own, so that virtual time stands still while its calls are pending. */
  readonly watch: <T extends object>(client: T) => T
}

/** The place where a world is made. */
interface Place {
  readonly clock: Clock
  readonly env: Env
  /** Narrates what a stand-in sees. */
  readonly tell: Tell
  /** A stand-in for an external service: `respond` answers each request, and `log` keeps it. */
  readonly standIn: (name: string, respond: StandIn['respond']) => StandIn
  /** The same for a handler that keeps a log of its own. */
  readonly serve: (name: string, handler: Handler) => void
}
