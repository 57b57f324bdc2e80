// Signs for Slack: an event of the Events API with signed time and body.
import { requestBody, JSON_TYPE, computeMac, toSeconds, type Signer } from './signed.ts'

export const slack: Signer = (asked) => {
  const seconds = toSeconds(asked.now)
  const event = { type: asked.type ?? 'message', channel: 'C0TEST', user: 'U0TEST', text: 'A test.' }
  const whole = {
    type: 'event_callback',
    team_id: 'T0TEST',
    event_id: `Ev${asked.id}`,
    event_time: Number(seconds),
    event,
  }
  const body = requestBody(asked, whole)
  const mac = { algorithm: 'sha256', encoding: 'hex', prefix: 'v0=' } as const
  const signature = computeMac(asked.secret, [`v0:${seconds}:`, body], mac)
  const headers = { 'x-slack-request-timestamp': seconds, 'x-slack-signature': signature }
  return { url: asked.url, headers: { ...JSON_TYPE, ...headers }, body }
}
