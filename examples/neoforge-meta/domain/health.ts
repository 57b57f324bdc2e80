// `webhookHealth` is the health of the webhooks as a whole, by the rules of the design.
export interface WebhookHealth {
  readonly status: 'UP' | 'DEGRADED' | 'DOWN'
  readonly details: { readonly stuckBatches: number; readonly failedBatches: number }
}

interface SubscriberHealth {
  readonly health: { readonly stuckBatches: number; readonly failedBatches: number }
}

const FAILED_MAX = 100

export function webhookHealth(subscribers: readonly SubscriberHealth[]): WebhookHealth {
  const sum = (field: keyof SubscriberHealth['health']): number =>
    subscribers.reduce((total, { health }) => total + health[field], 0)
  const details = { stuckBatches: sum('stuckBatches'), failedBatches: sum('failedBatches') }
  const status = details.stuckBatches > 0 ? 'DOWN' : details.failedBatches > FAILED_MAX ? 'DEGRADED' : 'UP'
  return { status, details }
}
