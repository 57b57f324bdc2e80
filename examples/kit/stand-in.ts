// A `StandIn` plays an external service: it answers requests, and keeps each in its log.
import type { Clock, Millis } from 'sluice'

export interface LoggedRequest {
  /** When its head arrived, on the clock that only goes forward. */
  readonly at: Millis
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly body: string
  /** 0 until it is answered. */
  readonly status: number
  /** The body as JSON. */
  readonly json: () => unknown
}

export class StandIn {
  readonly log: LoggedRequest[] = []
  /** May be replaced, e.g. by one that fails. */
  respond: (request: LoggedRequest) => Response | Promise<Response>
  readonly #clock: Clock

  constructor(clock: Clock, respond: StandIn['respond']) {
    this.#clock = clock
    this.respond = respond
  }

  readonly handle = async (request: Request): Promise<Response> => {
    const { pathname: path, searchParams: query } = new URL(request.url)
    const { method, headers } = request
    const logged = {
      at: this.#clock.monotonic(),
      method,
      path,
      query,
      headers,
      body: '',
      status: 0,
      json: () => JSON.parse(logged.body) as unknown,
    }
    this.log.push(logged)
    logged.body = await request.text()
    const response = await this.respond(logged)
    logged.status = response.status
    return response
  }
}

/** The address of the stand-in with that name. */
export function urlOf(urls: Readonly<Record<string, string>>, name: string): string {
  const url = urls[name]
  if (url !== undefined) return url
  throw new Error(`There is no stand-in named "${name}". These exist: ${Object.keys(urls).join(', ')}.`)
}
