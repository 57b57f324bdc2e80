// What the admin API operates on: the parts of an app that people act on and look at. An app has them all under these names.
import type { Endpoints } from '../deliver/endpoints.ts'
import type { Explanation } from '../observe/explain.ts'
import type { Alerts } from '../operate/alerts.ts'
import type { StatsAnswer, StatsAsked } from '../operate/stats.ts'
import type { Operating } from '../operating.ts'

export interface Operated extends Operating {
  readonly alerts: Alerts
  readonly endpoints: Endpoints
  stats(asked?: StatsAsked): Promise<StatsAnswer>
  metrics(): Promise<string>
  explain(flow: string, key: string): Promise<Explanation>
}
