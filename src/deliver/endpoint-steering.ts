// What `Endpoints` needs of the lanes and replays of an endpoint, which app/ implements.
import type { Endpoint } from './endpoint.ts'
import type { EndpointReplayResult, ParsedEndpointReplay, ReplayRange } from './endpoint-replay.ts'

/** `SteerableLanes` is what the operators of an endpoint do to its lanes. */
export interface SteerableLanes {
  hold(id: string, reason: string, by: string): Promise<void>
  unhold(id: string): Promise<void>
  resume(id: string): Promise<void>
  /** Returns the number of dropped events. */
  drop(id: string): Promise<number>
  /** Makes each open window of a delivery due, for all endpoints, and returns their number. */
  runAll(): Promise<number>
  /** Retries one dead letter of the endpoint, and returns their number; undefined if the endpoint does not have it. */
  retryDeadLetter(id: string, deadLetter: string): Promise<number | undefined>
  /** Retries the dead letters of the endpoint, and returns their number. */
  retryDeadLetters(id: string, range: ReplayRange): Promise<number>
}

/** `HistorySender` sends a new endpoint the stored events, before its live ones. */
export interface HistorySender {
  /** Starts the history once the endpoint is proven. It never rejects: what could not be started is started later. */
  start(endpoint: Endpoint): Promise<void>
  /** Sends the endpoint stored events again, behind its live ones. */
  replay(endpoint: Endpoint, asked: Extract<ParsedEndpointReplay, { kind: 'events' }>): Promise<EndpointReplayResult>
  /** Sends no more of the history. Live events follow what is already placed. */
  cancel(endpoint: Endpoint): Promise<void>
}
